"""The result of a search over codes: positions with their distances, nearest first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Hits(NamedTuple):
    """Positions and distances, in order of distance and then of insertion."""

    positions: NDArray[np.int64] | slice  # a slice if they are adjacent: the common case among equal codes
    distances: NDArray[Any]

    def indices(self) -> NDArray[np.int64]:
        """Return the positions as an array."""
        if isinstance(self.positions, slice):
            return np.arange(self.positions.start, self.positions.stop)
        return self.positions

    def first(self, k: int) -> Hits:
        """Return the k nearest of them."""
        if len(self.distances) <= k:
            return self
        if isinstance(self.positions, slice):
            start = self.positions.start
            return Hits(slice(start, start + k), self.distances[:k])
        return Hits(self.positions[:k], self.distances[:k])


def kth_smallest(distances: NDArray[Any], k: int) -> Any:
    """Return the k-th smallest distance, counted from 1.

    Bisection over the integers is faster than partial sorting.
    """
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
