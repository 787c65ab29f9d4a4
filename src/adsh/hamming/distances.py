"""Hamming distances by XOR and popcount."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bits import Codes, as_words

Distances = NDArray[np.unsignedinteger[Any]]
Words = NDArray[np.uint64]

_AT_A_TIME = 1 << 16  # codes: their XOR stays in the second-level cache


def hamming_distances(words: Words, code: Words, out: Distances, scratch: Words) -> None:
    """Write the distances from one code to others into `out`.

    Args:
        words: (n, words) the other codes.
        code: (words,) the code.
        out: (n,) the distances.
        scratch: (n,) or longer, to work in.
    """
    differing = scratch[: len(words)]
    for number in range(len(code)):
        np.bitwise_xor(words[:, number], code[number], out=differing)
        if number:
            out += np.bitwise_count(differing)
        else:
            np.bitwise_count(differing, out=out)


class CodeColumns:
    """Packed codes, stored by words: all first words, all second words, and so on."""

    def __init__(self, codes: Codes) -> None:
        self._columns = np.ascontiguousarray(as_words(codes).T)  # (words, n)
        self.distance_type = np.min_scalar_type(codes.shape[1] * 8)

    def __len__(self) -> int:
        return len(self._columns[0])

    def scratch(self) -> Words:
        """Return the memory that `distances` works in; one for each thread."""
        return np.empty(min(len(self), _AT_A_TIME), dtype=np.uint64)

    def distances(self, code: Words, start: int, out: Distances, scratch: Words) -> None:
        """Write the distances from one code to a range of these into `out`.

        Args:
            code: (words,) the code.
            start: the first code of the range; it is as long as `out`.
            out: the distances.
            scratch: what `scratch()` returned.
        """
        for at in range(0, len(out), len(scratch)):
            block = out[at : at + len(scratch)]
            first = start + at
            hamming_distances(self._columns[:, first : first + len(block)].T, code, block, scratch)
