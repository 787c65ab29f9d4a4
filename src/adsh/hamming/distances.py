"""Hamming distances by popcount, from one code to many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bits import Codes, as_words

Distances = NDArray[np.unsignedinteger[Any]]

_AT_A_TIME = 1 << 14  # codes: their XOR stays in the second-level cache


class CodeColumns:
    """Packed codes laid out for comparing: all first words, all second words, and so on."""

    def __init__(self, codes: Codes) -> None:
        self._columns = np.ascontiguousarray(as_words(codes).T)  # (words, n)
        self.distance_type = np.min_scalar_type(codes.shape[1] * 8)

    def __len__(self) -> int:
        return len(self._columns[0])

    def distances(self, code: NDArray[np.uint64], start: int, out: Distances) -> Distances:
        """The distances from `code` (words,) to the codes from `start` on, as many as `out` takes."""
        scratch = np.empty(min(len(out), _AT_A_TIME), dtype=np.uint64)
        for at in range(0, len(out), _AT_A_TIME):
            here = out[at : at + _AT_A_TIME]
            differing = scratch[: len(here)]
            part = slice(start + at, start + at + len(here))
            for number, (column, word) in enumerate(zip(self._columns, code, strict=True)):
                np.bitwise_xor(column[part], word, out=differing)
                if number:
                    here += np.bitwise_count(differing)
                else:
                    np.bitwise_count(differing, out=here)
        return out
