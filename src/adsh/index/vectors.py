"""Features as the small vectors an index keeps: shortened by what the first ones given decided."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import AdshWarning, InputError
from ..hamming.small_vectors import Projection
from .header import load_projection, save_projection
from .matches import StoredVectors
from .validation import check_count, check_features

_FEW_VECTORS = 256


class Shortening:
    """From features to small vectors, for one handle of an index."""

    def __init__(self, index: str) -> None:
        self._index = index
        self._projection: Projection | None = None

    def __call__(
        self,
        vectors: Any,
        count: int,
        stored: Callable[[], bytes | None],
        keep: Callable[[bytes], None] | None = None,
    ) -> NDArray[np.int8]:
        """Small vectors (count, dimensions). `stored` reads the projection; `keep` stores one, where it may be made."""
        if isinstance(vectors, StoredVectors):
            check_count("vectors", len(vectors.small), count)
            return vectors.small
        if self._projection is None:
            self._projection = load_projection(stored())
        width = None if self._projection is None else len(self._projection.mean)
        features = check_features(vectors, width, count)
        projection = self._projection
        if projection is None:
            if keep is None:
                raise InputError(f"{self._index} holds no vectors: add items with vectors= to re-rank by them")
            if count < _FEW_VECTORS:
                warnings.warn(
                    f"the first vectors given decide how all are shortened, and there are only {count}: "
                    f"add {_FEW_VECTORS} or more first",
                    AdshWarning,
                    stacklevel=3,
                )
            projection = Projection.fit(features)
            keep(save_projection(projection))
        return projection(features)
