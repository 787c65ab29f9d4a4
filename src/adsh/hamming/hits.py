"""What a search over codes gives: positions with their distances, nearest first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Hits(NamedTuple):
    """Positions and distances, in order of distance and then of insertion."""

    positions: NDArray[np.int64] | slice  # a slice where they are neighbours: the common case among equal codes
    distances: NDArray[Any]

    def indices(self) -> NDArray[np.int64]:
        """The positions as an array."""
        if isinstance(self.positions, slice):
            return np.arange(self.positions.start, self.positions.stop)
        return self.positions

    def first(self, k: int) -> Hits:
        """The nearest k of them."""
        if len(self.distances) <= k:
            return self
        if isinstance(self.positions, slice):
            start = self.positions.start
            return Hits(slice(start, start + k), self.distances[:k])
        return Hits(self.positions[:k], self.distances[:k])


def kth_smallest(distances: NDArray[Any], k: int) -> Any:
    """The k-th smallest distance, counted from 1: by halving the range of integers, which beats partial sorting."""
    if distances.dtype.kind == "f":
        return np.partition(distances, k - 1)[k - 1]
    low, high = int(distances.min()), int(distances.max())
    while low < high:
        middle = (low + high) // 2
        if np.count_nonzero(distances <= middle) >= k:
            high = middle
        else:
            low = middle + 1
    return low
