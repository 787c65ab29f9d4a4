"""`sdh`, `sdh_d`: supervised discrete hashing (Shen et al., 2015): codes that a linear classifier maps to the labels.

    Y    (n, L) the points' labels, multi-hot; never in memory, since a label set stands for all its points
    B    (n, c) the codes, +1/-1
    W    (c, L) a linear classifier of codes
    Phi  (n, a + 1) radial basis functions of the distances from the points to a anchors, and a column of ones
    P    (a + 1, c) the hash function: sign(Phi P)

    min over B, W and P of |Y - B W|^2 + lambda |W|^2 + nu (|B - Phi P|^2 + delta |P|^2)

in turn over P and W (ridge regressions) and B (discrete cyclic coordinate descent); no step raises the objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.bits import DEFAULT_BITS
from ..labels import LabelSets
from ..learn.similarity import sum_by
from .arrays import Signs, signs_of, tags_of_sets
from .base import FeatureMethod
from .solvers.coordinate_descent import minimize_codes
from .solvers.kernel import Anchors, Kernel
from .solvers.ridge import product, solve_ridge
from .validation import check_count, check_penalty

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


class SDH(FeatureMethod):
    """Supervised discrete hashing.

    Args:
        bits: Code length.
        anchors: Points whose distances the hash function reads.
        rounds: How often P, W and B are updated.
        sweeps: How often a round goes over the bits of B.
        classifier_penalty: lambda, the weight of |W|^2.
        hash_weight: nu, the weight of |B - Phi P|^2 + delta |P|^2.
        hash_penalty: delta, the weight of |P|^2 next to |B - Phi P|^2.
        **shared: As of `FeatureMethod`.
    """

    name = "sdh"

    def __init__(
        self,
        bits: int = DEFAULT_BITS,
        *,
        anchors: int = 1000,
        rounds: int = 5,
        sweeps: int = 10,
        classifier_penalty: float = 1.0,
        hash_weight: float = 1e-5,
        hash_penalty: float = 1e-2,
        **shared: Any,
    ) -> None:
        super().__init__(bits, **shared)
        self.anchors, self.rounds, self.sweeps = anchors, rounds, sweeps
        self.classifier_penalty, self.hash_weight, self.hash_penalty = classifier_penalty, hash_weight, hash_penalty

    def _check(self, points: int, width: int) -> None:
        for option in ("anchors", "rounds", "sweeps"):
            check_count(getattr(self, option), option)
        for option in ("classifier_penalty", "hash_weight", "hash_penalty"):
            check_penalty(getattr(self, option), option)
        if points < self.anchors:
            raise InputError(
                f"anchors={self.anchors}, but there are {points} training items with a label: pass at most "
                f"anchors={points}, or more items"
            )

    def _learn_codes(self, X: Floats, labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        assert labels is not None
        anchors = Anchors.among(X[np.sort(rng.choice(len(X), self.anchors, replace=False))], X)
        Phi = np.concatenate([anchors.features(X), np.ones((len(X), 1), dtype=np.float32)], axis=1)
        gram = product(Phi, Phi)  # (a + 1, a + 1)
        hot = tags_of_sets(labels)
        B = signs_of(rng.standard_normal((len(X), self.bits), dtype=np.float32))
        for _ in range(self.rounds):
            P, fitted = self._project(Phi, gram, B)
            W = self._classify(B, labels, hot)
            B = minimize_codes(B, self.hash_weight * fitted + (hot @ W.T)[labels.ids], W @ W.T, self.sweeps)
            self._record(self._objective(B, W, P, fitted, labels, hot))
        P, _ = self._project(Phi, gram, B)
        self._kernel = Kernel(anchors, P[:-1], P[-1])
        return B

    def _learn_hash(self, X: Floats, codes: Signs) -> Kernel:
        return self._kernel

    def _project(self, Phi: Floats, gram: Doubles, B: Signs) -> tuple[Doubles, Floats]:
        """Return P of least |B - Phi P|^2 + delta |P|^2, and Phi P.

        Args:
            Phi: (n, a + 1) features by anchors, and ones.
            gram: (a + 1, a + 1) Phi'Phi.
            B: (n, c) the codes.

        Returns:
            (a + 1, c) P, and (n, c) Phi P.
        """
        P = solve_ridge(gram, product(Phi, B), self.hash_penalty)
        return P, Phi @ P.astype(np.float32)

    def _classify(self, B: Signs, labels: LabelSets, hot: Doubles) -> Doubles:
        """Return W of least |Y - B W|^2 + lambda |W|^2; B'Y comes from the sums of B by label set.

        Args:
            B: (n, c) the codes.
            labels: Of the points.
            hot: (K, L) the labels of each set, multi-hot.

        Returns:
            (c, L) W.
        """
        return solve_ridge(_gram(B), _cross(B, labels, hot), self.classifier_penalty)

    def _objective(self, B: Signs, W: Doubles, P: Doubles, fitted: Floats, labels: LabelSets, hot: Doubles) -> float:
        """Return the objective that the rounds minimize.

        Args:
            B: (n, c) the codes.
            W: (c, L) the classifier.
            P: (a + 1, c) the hash function.
            fitted: (n, c) Phi P.
            labels: Of the points.
            hot: As for `_classify`.

        Returns:
            The sum over all points, with the penalties.
        """
        squares = float(labels.sizes @ hot.sum(axis=1))  # |Y|^2
        classifying = squares - 2 * float((W * _cross(B, labels, hot)).sum()) + float((W * (_gram(B) @ W)).sum())
        hashing = float(((B - fitted) ** 2).sum(dtype=np.float64)) + self.hash_penalty * float((P**2).sum())
        return classifying + self.classifier_penalty * float((W**2).sum()) + self.hash_weight * hashing


def _gram(B: Signs) -> Doubles:
    product: Doubles = (B.astype(np.float32).T @ B.astype(np.float32)).astype(np.float64)
    return product


def _cross(B: Signs, labels: LabelSets, hot: Doubles) -> Doubles:
    """Return B'Y, summed by label set.

    Args:
        B: (n, c) the codes.
        labels: Of the points.
        hot: As for `SDH._classify`.

    Returns:
        (c, L) B'Y.
    """
    return sum_by(labels.ids, B.astype(np.float64), labels.set_count).T @ hot


def build(bits: int, **options: Any) -> SDH:
    """Build `sdh`, or `sdh_d` with `use_full_database`."""
    return SDH(bits, **options)
