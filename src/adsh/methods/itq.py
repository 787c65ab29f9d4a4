"""`itq`: iterative quantisation (Gong and Lazebnik, 2011). Principal components, turned so that signs lose little.

No labels are read and vectors are not normalised. With V the centred points on their first c principal axes, it looks
for the rotation R and the signs B of least |B - V R|^2, each in turn exact with the other fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..labels import LabelSets
from .arrays import Signs, signs_of
from .base import FeatureMethod
from .solvers.ridge import Linear, principal_axes
from .validation import check_count

Floats = NDArray[np.float32]


class ITQ(FeatureMethod):
    """`rounds` of alternation from a random rotation. The objective is the mean error |b - v R|^2 of a point."""

    name = "itq"
    needs_labels = False

    def __init__(self, bits: int, *, rounds: int = 50, **shared: Any) -> None:
        super().__init__(bits, **shared)
        self.rounds = rounds

    def _check(self, points: int, width: int) -> None:
        check_count(self.rounds, "rounds")
        if self.bits > width:
            raise InputError(
                f"bits={self.bits}, but items have {width} features, and itq takes a bit from a principal axis: "
                f"pass at most {width} bits, or more features"
            )

    def _learn_codes(self, X: Floats, labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        mean, axes, _ = principal_axes(X, self.bits)
        V = (X - mean) @ axes.astype(np.float32)  # (n, c)
        R = random_rotation(self.bits, rng)
        for _ in range(self.rounds):
            B = signs_of(V @ R)
            R = nearest_rotation(V, B)
            self._record(quantisation_error(V, B, R))
        turned = axes @ R
        self._linear = Linear(turned, -mean @ turned)
        return signs_of(V @ R)

    def _learn_hash(self, X: Floats, codes: Signs) -> Linear:
        return self._linear


def random_rotation(bits: int, rng: np.random.Generator) -> Floats:
    """(c, c) orthogonal, drawn uniformly."""
    orthogonal, upper = np.linalg.qr(rng.standard_normal((bits, bits)))
    rotation: Floats = (orthogonal * np.where(np.diag(upper) < 0, -1, 1)).astype(np.float32)
    return rotation


def nearest_rotation(V: Floats, B: Signs) -> Floats:
    """The orthogonal R of least |B - V R|^2: from the singular vectors of V'B (orthogonal Procrustes)."""
    left, _, right = np.linalg.svd(V.T @ B.astype(np.float32))
    rotation: Floats = left @ right
    return rotation


def quantisation_error(V: Floats, B: Signs, R: Floats) -> float:
    """The mean over points of |b - v R|^2."""
    return float(((B - V @ R) ** 2).sum(axis=1).mean(dtype=np.float64))


def build(bits: int, **options: Any) -> ITQ:
    """`itq` of so many bits."""
    return ITQ(bits, **options)
