"""Compress features to the small vectors that an index stores."""

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


class VectorCompressor:
    """Compresses features for one handle of an index, by a projection that is fitted to the first features added."""

    def __init__(self, index: str) -> None:
        self._index = index
        self._projection: Projection | None = None

    def compress(
        self,
        vectors: Any,
        count: int,
        load: Callable[[], bytes | None],
        save: Callable[[bytes], None] | None = None,
    ) -> NDArray[np.int8]:
        """Return the small vectors of features.

        Args:
            vectors: features (count, d), or `StoredVectors`, which are small already.
            count: how many vectors are expected.
            load: reads the projection that the index stores.
            save: stores a projection; None if none may be fitted now.

        Returns:
            int8 array (count, dimensions).
        """
        if isinstance(vectors, StoredVectors):
            check_count("vectors", len(vectors.small), count)
            return vectors.small
        if self._projection is None:
            self._projection = load_projection(load())
        width = None if self._projection is None else len(self._projection.mean)
        features = check_features(vectors, width, count)
        projection = self._projection
        if projection is None:
            if save is None:
                raise InputError(f"{self._index} holds no vectors: add items with vectors= to re-rank by them")
            if count < _FEW_VECTORS:
                warnings.warn(
                    f"the first vectors given decide how all are compressed, and there are only {count}: "
                    f"add {_FEW_VECTORS} or more first",
                    AdshWarning,
                    stacklevel=4,
                )
            projection = Projection.fit(features)
            save(save_projection(projection))
        return projection(features)
