"""Hamming distances by popcount."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bits import Codes, as_words

Distances = NDArray[np.unsignedinteger[Any]]
Words = NDArray[np.uint64]

_AT_A_TIME = 1 << 16  # codes: their XOR stays in the second-level cache


class CodeColumns:
    """Packed codes laid out for comparing: all first words, all second words, and so on."""

    def __init__(self, codes: Codes) -> None:
        self._columns = np.ascontiguousarray(as_words(codes).T)  # (words, n)
        self.distance_type = np.min_scalar_type(codes.shape[1] * 8)

    def __len__(self) -> int:
        return len(self._columns[0])

    def scratch(self) -> Words:
        """What `distances` needs to work in; one for each thread."""
        return np.empty(min(len(self), _AT_A_TIME), dtype=np.uint64)

    def distances(self, code: Words, start: int, out: Distances, scratch: Words) -> None:
        """Fills `out` with the distances from `code` (words,) to as many codes, from number `start` on."""
        for at in range(0, len(out), len(scratch)):
            here = out[at : at + len(scratch)]
            differing = scratch[: len(here)]
            first = start + at
            for number, word in enumerate(code):
                np.bitwise_xor(self._columns[number, first : first + len(here)], word, out=differing)
                if number:
                    here += np.bitwise_count(differing)
                else:
                    np.bitwise_count(differing, out=here)
