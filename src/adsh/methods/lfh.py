"""`lfh`, `lfh_d`: latent factor hashing (Zhang et al., 2014): large inner products make similar pairs likely.

    U      (n, c) the latent factors; the codes are sign(U)
    Theta  U U' / 2; a pair is similar with probability a = 1 / (1 + exp(-Theta))
    beta   the variance of the prior N(0, beta) on U, against a sample of c columns

In a round, c columns are sampled and every other row moves, given the sampled rows U_s, to the maximum of a quadratic
lower bound of the log-likelihood (the logistic's curvature is at most 1/4): H = -U_s'U_s / 8 - (c / beta) I. So no
round lowers the likelihood of the sampled columns. These full steps, the published ones, fit the last sample at the
cost of all others, and the likelihood of all pairs never converges: `lfh_decay` shortens them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import DEFAULT_BITS
from ..labels import LabelSets
from ..learn.similarity import SharedTags
from .arrays import Signs, signs_of
from .solvers.ridge import principal_axes
from .two_step import TwoStep
from .validation import check_count, check_penalty

Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]

_NUM_TRACKED = 64  # columns whose likelihood is the objective of the history


class LFH(TwoStep):
    """Latent factor hashing, from the principal components.

    The objective of the history is the mean negative log-likelihood of the pairs of a few columns, the same in every
    round.

    Args:
        bits: Code length.
        rounds: How often columns are sampled.
        variance: beta, the variance of the prior.
        decay: A row takes 1 / (1 + decay t) of the step in round t; 0, full steps, is the published method.
        **shared: As of `TwoStep`.
    """

    name = "lfh"

    def __init__(
        self, bits: int = DEFAULT_BITS, *, rounds: int = 50, variance: float = 30.0, decay: float = 0.0, **shared: Any
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
        U = initial_factors(X, self.bits, rng)
        tracked = rng.choice(len(U), min(_NUM_TRACKED, len(U)), replace=False)
        truth = similarity_columns(pairs, ids, tracked)
        self._record(-log_likelihood(U, U[tracked], truth) / truth.size, start=True)
        for t in range(self.rounds):
            omega = rng.choice(len(U), min(self.bits, len(U) - 1), replace=False)
            step = maximize_bound(U, U[omega], similarity_columns(pairs, ids, omega), len(omega) / self.variance) - U
            step[omega] = 0
            U = U + step / (1 + self.decay * t)
            self._record(-log_likelihood(U, U[tracked], truth) / truth.size)
        return signs_of(U)


def initial_factors(X: NDArray[np.float32], bits: int, rng: np.random.Generator) -> Doubles:
    """Return the principal components, each of variance 1; noise where there are fewer than bits.

    Args:
        X: (n, d) features.
        bits: c.
        rng: For the noise.

    Returns:
        (n, c) the factors.
    """
    mean, axes, variances = principal_axes(X, bits)
    axes = axes[:, variances > 1e-9 * variances[0]] if variances[0] > 0 else axes[:, :0]
    U = rng.standard_normal((len(X), bits))
    components = (X - mean) @ axes.astype(np.float32)
    U[:, : axes.shape[1]] = components / np.maximum(components.std(axis=0), 1e-12)
    return U


def similarity_columns(pairs: SharedTags, ids: Indices, omega: Indices) -> Doubles:
    """Return the sampled columns of the similarity matrix.

    Args:
        pairs: Which label sets are similar.
        ids: (n,) the label set of each point.
        omega: (m,) the sampled points.

    Returns:
        (n, m) 1 where a point is similar to a sampled one, 0 elsewhere.
    """
    block: Doubles = pairs.sum_rows(ids[omega], np.eye(len(omega)))[ids]
    return block


def maximize_bound(U: Doubles, sampled: Doubles, similar: Doubles, shrink: float) -> Doubles:
    """Move every row to the maximum of its quadratic bound, with the sampled factors fixed. O(n c^2).

    For a row u the objective is 2 sum_j [s_j theta_j - log(1 + exp theta_j)] - shrink |u|^2 / 2, each pair counted from
    both its ends; its gradient is sum_j (s_j - a_j) u_j - shrink u.

    Args:
        U: (n, c) the factors before.
        sampled: (m, c) the factors of the sampled points.
        similar: (n, m) 1 for similar pairs, 0 for others.
        shrink: m / beta, the weight of the prior.

    Returns:
        (n, c) the factors at the maximum.
    """
    theta = U @ sampled.T / 2  # (n, m)
    gradient = (similar - 0.5 * (1 + np.tanh(theta / 2))) @ sampled - shrink * U
    curvature = sampled.T @ sampled / 8 + shrink * np.eye(U.shape[1])  # -H
    moved: Doubles = U + np.linalg.solve(curvature, gradient.T).T
    return moved


def log_likelihood(U: Doubles, sampled: Doubles, similar: Doubles) -> float:
    """Return the sum of s theta - log(1 + exp theta) over the pairs of all rows with the sampled ones.

    Args:
        U: (n, c) the factors.
        sampled: (m, c) those of the sampled points.
        similar: (n, m) 1 for similar pairs, 0 for others.

    Returns:
        The sum; at most 0.
    """
    theta = U @ sampled.T / 2
    return float((similar * theta).sum() - np.logaddexp(0, theta).sum())


def build(bits: int, **options: Any) -> LFH:
    """Build `lfh`, or `lfh_d` with `use_full_database`."""
    return LFH(bits, **options)
