"""A query: one code, or the real-valued outputs behind it, and its distance to codes.

Hamming       the number of bits in which two codes differ
asymmetric    (bits - u.v) / 2 of real-valued outputs u and a code v of +1/-1: the Hamming distance if u is a code, and
              in between where the network is uncertain, which breaks ties of the Hamming distance
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bits import Codes, as_words, bytes_for, pack, unpack
from .distances import Words, hamming_distances

_AT_A_TIME = 1 << 16  # codes: their XOR stays in the second-level cache
_BYTE_SIGNS = unpack(np.arange(256, dtype=np.uint8)[:, None], 8).astype(np.float64)  # (256, 8)


@dataclass(frozen=True, slots=True)
class Query:
    """One query."""

    words: Words  # (words,)
    bits: int
    products: NDArray[np.float64] | None = None  # (bytes, 256) asymmetric: what a byte's value adds to u.v

    @property
    def is_asymmetric(self) -> bool:
        """Whether distances are those of real-valued outputs."""
        return self.products is not None

    def identity(self) -> bytes:
        """Return bytes that two queries share if they have the same distances to all codes."""
        return self.words.tobytes() if self.products is None else self.products.tobytes()

    def distances(self, words: Words) -> NDArray[Any]:
        """Return the distance to each code (n,): unsigned integers, or floats if the query is asymmetric."""
        if self.products is not None:
            return self._asymmetric(words, self.products)
        n, width = words.shape
        if width == 1 and n <= _AT_A_TIME:
            few: NDArray[Any] = np.bitwise_count(words[:, 0] ^ self.words[0])
            return few
        out = np.empty(n, dtype=np.min_scalar_type(width * 64))
        scratch = np.empty(min(n, _AT_A_TIME), dtype=np.uint64)
        for start in range(0, n, _AT_A_TIME):
            hamming_distances(words[start : start + _AT_A_TIME], self.words, out[start : start + _AT_A_TIME], scratch)
        return out

    def _asymmetric(self, words: Words, products: NDArray[np.float64]) -> NDArray[np.float64]:
        octets = words.view(np.uint8).reshape(len(words), -1)
        product = np.zeros(len(words))
        for number, values in enumerate(products):  # always in this order: equal codes get equal sums
            product += values[octets[:, number]]
        return (self.bits - product) / 2


def code_queries(codes: Codes, bits: int) -> list[Query]:
    """Return one Hamming query per code."""
    return [Query(row, bits) for row in as_words(codes)]


def output_queries(outputs: NDArray[Any], bits: int) -> list[Query]:
    """Return one asymmetric query per row of real-valued outputs (q, bits)."""
    octets = np.zeros((len(outputs), bytes_for(bits) * 8))
    octets[:, :bits] = outputs
    products = octets.reshape(len(outputs), -1, 8) @ _BYTE_SIGNS.T  # (q, bytes, 256)
    words = as_words(pack(np.asarray(outputs)))
    return [Query(row, bits, product) for row, product in zip(words, products, strict=True)]
