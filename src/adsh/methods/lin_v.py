"""`lin_v`: Lin:V (Neyshabur et al., 2013): a linear function encodes queries, and the database has free bits.

    U  (m, c) sign(X W), the codes of a block of queries drawn from the database
    V  (K, c) the database's codes, one per label set
    M  (m, K) what each pair gains where bit k of both agrees, the other bits fixed (`pair_loss`)

Bit by bit, each on a new block: w is fitted to sign(M v) with weights |M v| and accepted where u'M v does not fall;
then v = sign(M'u), which is optimal. All points of a label set have the same M and start equal, so they stay equal: the
K rows stand for any number of points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets
from ..learn.similarity import SharedTags
from .arrays import Signs, first_occurrences
from .linear_bits import LinearBits, fit_linear_bit, products, signs, standardize, unstandardize
from .solvers.pair_loss import best_threshold, gains, objective
from .solvers.ridge import Linear, moments

Floats = NDArray[np.float32]


class LinV(LinearBits):
    """`rounds` over the bits on blocks of `block` queries; a bit's two sides alternate `alternations` times.

    A block should hold a few times as many queries as there are features, or w overfits its block.

    The objective is the mean loss of a pair, over a block of queries that is the same in every round.
    """

    name = "lin_v"
    needs_full_database = True

    def _learn_codes(self, X: Floats, labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        assert labels is not None
        mean, scale = moments(X)
        pairs, ids = SharedTags(labels, labels), labels.ids.astype(np.int64)
        counts, size = labels.sizes.astype(np.float64), self._block_size(X)

        def draw() -> tuple[Floats, NDArray[np.bool_]]:
            chosen = rng.choice(len(X), size, replace=False)
            return standardize(X[chosen], mean, scale), pairs.sum_rows(ids[chosen], np.eye(len(chosen))).T > 0

        W = np.zeros((X.shape[1] + 1, self.bits), dtype=np.float32)
        V = np.ones((labels.set_count, self.bits), dtype=np.float32)
        V[first_occurrences(ids)] = signs(rng.standard_normal((len(np.unique(ids)), self.bits), dtype=np.float32))
        tracked, theta = draw(), 0.0
        self._record(objective(tracked[1], products(tracked[0], W, V), theta, counts), start=True)
        for turn in range(self.rounds):
            for k in range(self.bits):
                Z, similar = draw()
                others = np.flatnonzero(np.arange(self.bits) != k) if turn else np.arange(k)  # turn 0 adds bits
                M = gains(similar, products(Z, W[:, others], V[:, others]), self.bits, theta)
                for _ in range(self.alternations):
                    W[:, k] = fit_linear_bit(Z, M * counts.astype(np.float32), V[:, k], W[:, k], self.penalty)
                    V[:, k] = optimal_bit(M, signs(Z @ W[:, k]), V[:, k])
            Z, similar = draw()
            theta = best_threshold(similar, products(Z, W, V), self.bits, theta, counts)
            self._record(objective(tracked[1], products(tracked[0], W, V), theta, counts))
        self._linear = unstandardize(W, mean, scale)
        return V.astype(np.int8)[ids]

    def _learn_hash(self, X: Floats, codes: Signs) -> Linear:
        return self._linear


def optimal_bit(M: Floats, bit: Floats, before: Floats) -> Floats:
    """Return v = sign(M'u), the optimal database bits given the queries'; ties keep the old bit.

    Args:
        M: (m, K) what each pair gains where the bit agrees.
        bit: (m,) u, the queries' bit.
        before: (K,) the database's bit before.

    Returns:
        (K,) the database's bit after.
    """
    pull = bit @ M
    return np.where(pull == 0, before, signs(pull))


def build(bits: int, **options: Any) -> LinV:
    """Build `lin_v`."""
    return LinV(bits, **options)
