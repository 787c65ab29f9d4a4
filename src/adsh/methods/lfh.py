"""`lfh`, `lfh_d`: latent factor hashing (Zhang et al., 2014). Similar pairs are likely where inner products are large.

    U      (n, c) the latent factors; the codes are sign(U)
    Theta  U U' / 2; a pair is similar with probability a = 1 / (1 + exp(-Theta))
    beta   the variance of the prior N(0, beta) on U, against a sample of c columns

In a round, c columns are sampled and every other row moves, given the sampled rows U_s, to the top of a quadratic
below the log-likelihood (curvature at most 1/4 of the logistic): H = -U_s'U_s / 8 - (c / beta) I. So no round lowers
the likelihood of the sampled columns. Full moves fit the last sample at the cost of all others, and the likelihood of
the whole never settles: here a row goes only part of the way, 1 / (1 + decay t) in round t, which still rises.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets
from ..learn.similarity import SharedTags
from .arrays import Signs, signs_of
from .solvers.ridge import principal_axes
from .two_step import TwoStep
from .validation import check_count, check_penalty

Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]

_WATCHED = 64  # columns whose likelihood is the objective of the history


class LFH(TwoStep):
    """`rounds` from the principal components, with the prior's `variance` beta; `decay` 0 makes full moves.

    The objective of the history is the mean log-likelihood of the pairs of some columns, the same in every round,
    with the sign turned: it falls.
    """

    name = "lfh"

    def __init__(
        self, bits: int, *, rounds: int = 50, variance: float = 30.0, decay: float = 0.5, **shared: Any
    ) -> None:
        super().__init__(bits, **shared)
        self.rounds, self.variance, self.decay = rounds, variance, decay

    def _check(self, points: int, width: int) -> None:
        super()._check(points, width)
        check_count(self.rounds, "rounds")
        check_penalty(self.variance, "variance")
        if self.decay != 0:
            check_penalty(self.decay, "decay")

    def _learn_codes(self, X: NDArray[np.float32], labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        assert labels is not None
        pairs, ids = SharedTags(labels, labels), labels.ids.astype(np.int64)
        U = start(X, self.bits, rng)
        watched = rng.choice(len(U), min(_WATCHED, len(U)), replace=False)
        truth = columns(pairs, ids, watched)
        self._record(-log_likelihood(U, U[watched], truth) / truth.size, start=True)
        for t in range(self.rounds):
            omega = rng.choice(len(U), min(self.bits, len(U) - 1), replace=False)
            move = top(U, U[omega], columns(pairs, ids, omega), len(omega) / self.variance) - U
            move[omega] = 0
            U = U + move / (1 + self.decay * t)
            self._record(-log_likelihood(U, U[watched], truth) / truth.size)
        return signs_of(U)


def start(X: NDArray[np.float32], bits: int, rng: np.random.Generator) -> Doubles:
    """(n, c) the principal components, each of variance 1; noise where there are fewer than bits."""
    mean, axes, variances = principal_axes(X, bits)
    axes = axes[:, variances > 1e-9 * variances[0]] if variances[0] > 0 else axes[:, :0]
    U = rng.standard_normal((len(X), bits))
    components = (X - mean) @ axes.astype(np.float32)
    U[:, : axes.shape[1]] = components / np.maximum(components.std(axis=0), 1e-12)
    return U


def columns(pairs: SharedTags, ids: Indices, omega: Indices) -> Doubles:
    """(n, m) of 1 where a point is similar to a sampled one, 0 elsewhere."""
    block: Doubles = pairs.sum_rows(ids[omega], np.eye(len(omega)))[ids]
    return block


def top(U: Doubles, sampled: Doubles, similar: Doubles, shrink: float) -> Doubles:
    """Every row at the top of its quadratic bound, the sampled factors fixed. O(n c^2).

    For a row u the bounded objective is 2 sum_j [s_j theta_j - log(1 + exp theta_j)] - shrink |u|^2 / 2, each pair
    counted from both its ends; its gradient is sum_j (s_j - a_j) u_j - shrink u.
    """
    theta = U @ sampled.T / 2  # (n, m)
    gradient = (similar - 0.5 * (1 + np.tanh(theta / 2))) @ sampled - shrink * U
    curvature = sampled.T @ sampled / 8 + shrink * np.eye(U.shape[1])  # -H
    moved: Doubles = U + np.linalg.solve(curvature, gradient.T).T
    return moved


def log_likelihood(U: Doubles, sampled: Doubles, similar: Doubles) -> float:
    """sum [s theta - log(1 + exp theta)] over the pairs of all rows with the sampled ones."""
    theta = U @ sampled.T / 2
    return float((similar * theta).sum() - np.logaddexp(0, theta).sum())


def build(bits: int, **options: Any) -> LFH:
    """`lfh` of so many bits, or `lfh_d` with `whole`."""
    return LFH(bits, **options)
