"""What is searched for: one code, or the real-valued outputs behind it, and the distance of either to codes.

Hamming       the bits in which two codes differ
asymmetric    (bits - u.v) / 2 of real outputs u and a code v of +1/-1: the same number where u is a code itself,
              and in between where the network was in doubt, which orders what Hamming distance leaves tied
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bits import Codes, as_words, bytes_for, pack, unpack

Words = NDArray[np.uint64]  # (n, words): codes padded with zeros to whole words of 8 bytes

_AT_A_TIME = 1 << 16  # codes: their XOR stays in the second-level cache
_BYTE_SIGNS = unpack(np.arange(256, dtype=np.uint8)[:, None], 8).astype(np.float64)  # (256, 8)


@dataclass(frozen=True, slots=True)
class Query:
    """One thing to search for."""

    words: NDArray[np.uint64]  # (words,)
    bits: int
    table: NDArray[np.float64] | None = None  # (bytes, 256): what each value of each byte of a code adds to u.v

    def distances(self, words: Words) -> NDArray[Any]:
        """The distance to each code (n,): unsigned integers, or floats where the ranking is asymmetric."""
        if self.table is not None:
            return self._asymmetric(words)
        n, width = words.shape
        if width == 1 and n <= _AT_A_TIME:
            few: NDArray[Any] = np.bitwise_count(words[:, 0] ^ self.words[0])
            return few
        out = np.empty(n, dtype=np.min_scalar_type(width * 64))
        scratch = np.empty(min(n, _AT_A_TIME), dtype=np.uint64)
        for start in range(0, n, _AT_A_TIME):
            hamming(words[start : start + _AT_A_TIME], self.words, out[start : start + _AT_A_TIME], scratch)
        return out

    def _asymmetric(self, words: Words) -> NDArray[np.float64]:
        assert self.table is not None
        octets = words.view(np.uint8).reshape(len(words), -1)
        product = np.zeros(len(words))
        for number, values in enumerate(self.table):  # always in this order: equal codes get equal sums
            product += values[octets[:, number]]
        return (self.bits - product) / 2


def hamming(words: Words, code: NDArray[np.uint64], out: NDArray[Any], scratch: NDArray[np.uint64]) -> None:
    """Fills `out` with the distances from `code` to as many codes."""
    differing = scratch[: len(words)]
    for number in range(len(code)):
        np.bitwise_xor(words[:, number], code[number], out=differing)
        if number:
            out += np.bitwise_count(differing)
        else:
            np.bitwise_count(differing, out=out)


def code_queries(codes: Codes, bits: int) -> list[Query]:
    """One Hamming query a row."""
    return [Query(row, bits) for row in as_words(codes)]


def output_queries(outputs: NDArray[Any], bits: int) -> list[Query]:
    """One asymmetric query a row of real-valued outputs (q, bits)."""
    octets = np.zeros((len(outputs), bytes_for(bits) * 8))
    octets[:, :bits] = outputs
    tables = octets.reshape(len(outputs), -1, 8) @ _BYTE_SIGNS.T  # (q, bytes, 256)
    words = as_words(pack(np.asarray(outputs)))
    return [Query(row, bits, table) for row, table in zip(words, tables, strict=True)]
