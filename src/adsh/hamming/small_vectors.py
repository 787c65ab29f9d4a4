"""Break ties by small int8 vectors, compared exactly.

Features are centred, projected on their first principal components and rounded to int8 with one scale for all, so that
Euclidean distances keep their proportions. Both sides are int8: every product and sum below 2^24 is exact in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 64
NONE = -128  # the first number of the vector of an item that has none; others are -127 to 127
FARTHEST = np.float32(1 << 23)  # beyond any distance: 64 * 254^2 < 2^23

_AT_A_TIME = 1 << 13  # vectors: as float32 they stay in the second-level cache
_FIT_ON = 20_000  # vectors: more change nothing at 64 dimensions


@dataclass(frozen=True)
class Projection:
    """A projection of features to small vectors."""

    mean: NDArray[np.float32]  # (d,)
    components: NDArray[np.float32]  # (d, dimensions)
    scale: float

    @classmethod
    def fit(cls, features: NDArray[Any], dimensions: int = DIMENSIONS) -> Projection:
        """Fit the principal components of these features; one row is enough."""
        rows = np.asarray(features, dtype=np.float64)
        if len(rows) > _FIT_ON:
            rows = rows[np.linspace(0, len(rows) - 1, _FIT_ON).astype(np.intp)]
        mean = rows.mean(axis=0)
        centred = rows - mean
        values, vectors = np.linalg.eigh(centred.T @ centred)
        components = vectors[:, np.argsort(values)[::-1][:dimensions]]
        components = components * np.where(
            components[np.abs(components).argmax(axis=0), range(components.shape[1])] < 0, -1, 1
        )
        reach = np.quantile(np.abs(centred @ components), 0.9999)
        return cls(mean.astype(np.float32), components.astype(np.float32), float(127 / reach) if reach > 0 else 1.0)

    def __call__(self, features: NDArray[Any]) -> NDArray[np.int8]:
        """Return small vectors (n, dimensions)."""
        projected = (np.asarray(features, dtype=np.float32) - self.mean) @ self.components
        return np.clip(np.rint(projected * self.scale), -127, 127).astype(np.int8)


def squared_distances(
    vector: NDArray[np.int8], vectors: NDArray[np.int8], positions: NDArray[np.int64] | slice
) -> NDArray[np.float32]:
    """Return the squared distances from one small vector to others; FARTHEST for an item without one.

    Args:
        vector: (dimensions,) the query's.
        vectors: (n, dimensions), those of all items.
        positions: which of them to compare with.

    Returns:
        Array (len(positions),) of float32.
    """
    count = positions.stop - positions.start if isinstance(positions, slice) else len(positions)
    out = np.empty(count, dtype=np.float32)
    query = vector.astype(np.float32)
    for start in range(0, count, _AT_A_TIME):
        stop = min(start + _AT_A_TIME, count)
        if isinstance(positions, slice):
            block = vectors[positions.start + start : positions.start + stop]
        else:
            block = vectors[positions[start:stop]]
        difference = block.astype(np.float32)
        difference -= query
        out[start:stop] = np.einsum("ij,ij->i", difference, difference)
        out[start:stop][block[:, 0] == NONE] = FARTHEST
    return out
