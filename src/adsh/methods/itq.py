"""`itq`: iterative quantization (Gong and Lazebnik, 2011): principal components, rotated for the least sign error.

    V  (n, c) the centred points on their first c principal axes
    B  (n, c) the codes, +1/-1
    R  (c, c) a rotation

    min over B and R of |B - V R|^2, in turn: B = sign(V R), and R by orthogonal Procrustes; both steps are exact

Labels are ignored and vectors are not normalized.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.bits import DEFAULT_BITS
from ..labels import LabelSets
from .arrays import Signs, signs_of
from .base import FeatureMethod
from .solvers.ridge import Linear, principal_axes
from .validation import check_count

Floats = NDArray[np.float32]


class ITQ(FeatureMethod):
    """Iterative quantization; the objective of the history is the mean of |b - v R|^2 over the points.

    Args:
        bits: Code length.
        rounds: Alternations between codes and rotation, from a random rotation.
        **shared: As of `FeatureMethod`.
    """

    name = "itq"
    needs_labels = False

    def __init__(self, bits: int = DEFAULT_BITS, *, rounds: int = 50, **shared: Any) -> None:
        super().__init__(bits, **shared)
        self.rounds = rounds

    def _check(self, points: int, width: int) -> None:
        check_count(self.rounds, "rounds")
        if self.bits > width:
            raise InputError(
                f"bits={self.bits}, but items have {width} feature(s), and itq needs a principal axis for each bit: "
                f"pass at most {width} bits, or more features"
            )

    def _learn_codes(self, X: Floats, labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        mean, axes, _ = principal_axes(X, self.bits)
        V = (X - mean) @ axes.astype(np.float32)  # (n, c)
        R = random_rotation(self.bits, rng)
        for _ in range(self.rounds):
            B = signs_of(V @ R)
            R = nearest_rotation(V, B)
            self._record(quantization_error(V, B, R))
        rotated = axes @ R
        self._linear = Linear(rotated, -mean @ rotated)
        return signs_of(V @ R)

    def _learn_hash(self, X: Floats, codes: Signs) -> Linear:
        return self._linear


def random_rotation(bits: int, rng: np.random.Generator) -> Floats:
    """Return a (c, c) orthogonal matrix, drawn uniformly."""
    orthogonal, upper = np.linalg.qr(rng.standard_normal((bits, bits)))
    rotation: Floats = (orthogonal * np.where(np.diag(upper) < 0, -1, 1)).astype(np.float32)
    return rotation


def nearest_rotation(V: Floats, B: Signs) -> Floats:
    """Return the orthogonal R of least |B - V R|^2: orthogonal Procrustes, from the singular vectors of V'B."""
    left, _, right = np.linalg.svd(V.T @ B.astype(np.float32))
    rotation: Floats = left @ right
    return rotation


def quantization_error(V: Floats, B: Signs, R: Floats) -> float:
    """Return the mean over the points of |b - v R|^2.

    Args:
        V: (n, c) the projected points.
        B: (n, c) the codes.
        R: (c, c) the rotation.

    Returns:
        The mean squared distance.
    """
    return float(((B - V @ R) ** 2).sum(axis=1).mean(dtype=np.float64))


def build(bits: int, **options: Any) -> ITQ:
    """Build `itq`."""
    return ITQ(bits, **options)
