"""`lsh`: locality-sensitive hashing (Charikar, 2002): the signs of random projections.

    h(x) = sign(w'(x - mean)),  w drawn from N(0, I)

Nothing but the mean is learned: this is the baseline that every learned code must beat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets
from .arrays import Signs, signs_of
from .base import FeatureMethod
from .solvers.ridge import Linear

Floats = NDArray[np.float32]


class LSH(FeatureMethod):
    """`bits` random hyperplanes through the mean of the training items.

    Labels are ignored. There are no rounds, so the history is empty.
    """

    name = "lsh"
    needs_labels = False

    def _check(self, points: int, width: int) -> None:
        pass

    def _learn_codes(self, X: Floats, labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        planes = rng.standard_normal((X.shape[1], self.bits), dtype=np.float32)
        self._linear = Linear(planes, -X.mean(axis=0, dtype=np.float64) @ planes)
        return signs_of(self._linear.outputs(X))

    def _learn_hash(self, X: Floats, codes: Signs) -> Linear:
        return self._linear


def build(bits: int, **options: Any) -> LSH:
    """Build `lsh`."""
    return LSH(bits, **options)
