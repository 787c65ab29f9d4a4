"""`lin_lin`: Lin:Lin (Neyshabur et al., 2013): one linear function encodes queries, another the database.

    U  sign(X W), the codes of a block of points as queries
    V  sign(Y R), the codes of another block as database points
    M  what each pair gains where bit k of both agrees, the other bits fixed (`pair_loss`)

Bit by bit, each on a new block: one side is fitted to sign(M v) with weights |M v|, the other to sign(M'u) with weights
|M'u|. A fit is accepted where u'M v does not fall, so none raises the objective on its block. With few points per
feature it fits its block alone, so the size of a block follows the number of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets
from ..learn.similarity import SharedTags
from .arrays import Signs
from .linear_bits import LinearBits, fit_linear_bit, signs, standardize, unstandardize
from .solvers.pair_loss import best_threshold, gains, objective
from .solvers.ridge import Linear, moments

Floats = NDArray[np.float32]
Block = tuple[Floats, Floats, NDArray[np.bool_]]  # queries, database points, and which pairs are similar

_LEAST_BLOCK, _POINTS_PER_FEATURE = 1000, 10
_NUM_COUNTED = 1000  # points on either side whose pairs give the objective and the threshold: a million pairs


class LinLin(LinearBits):
    """`rounds` over the bits on `block` x `block` pairs; a bit's two sides alternate `alternations` times.

    By default a block has ten points per feature, at least 1,000 and at most 8,000. The objective is the mean loss of a
    pair, over a sample that is the same in every round. `hash_` encodes queries, `database_hash_` the database.
    """

    name = "lin_lin"

    def _learn_codes(self, X: Floats, labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        assert labels is not None
        mean, scale = moments(X)
        pairs, ids = SharedTags(labels, labels), labels.ids.astype(np.int64)
        size, counted = self._block_size(X), min(_NUM_COUNTED, len(X))

        def draw(size: int) -> Block:
            query, database = (rng.choice(len(X), size, replace=False) for _ in range(2))
            sets, member = np.unique(ids[query], return_inverse=True)
            similar = pairs.sum_rows(sets, np.eye(len(sets))) > 0  # (K, k)
            return (
                standardize(X[query], mean, scale),
                standardize(X[database], mean, scale),
                similar.T[member][:, ids[database]],
            )

        W, R = np.zeros((2, X.shape[1] + 1, self.bits), dtype=np.float32)
        R[:] = rng.standard_normal(R.shape, dtype=np.float32) / np.float32(np.sqrt(len(R)))
        tracked, theta, one_each = draw(counted), 0.0, np.ones(counted)
        self._record(objective(tracked[2], inner_products(tracked, W, R), theta, one_each), start=True)
        for turn in range(self.rounds):
            for k in range(self.bits):
                block = draw(size)
                others = np.flatnonzero(np.arange(self.bits) != k) if turn else np.arange(k)  # turn 0 adds bits
                M = gains(block[2], inner_products(block, W[:, others], R[:, others]), self.bits, theta)
                for _ in range(self.alternations):
                    W[:, k] = fit_linear_bit(block[0], M, signs(block[1] @ R[:, k]), W[:, k], self.penalty)
                    R[:, k] = fit_linear_bit(block[1], M.T, signs(block[0] @ W[:, k]), R[:, k], self.penalty)
            block = draw(counted)
            theta = best_threshold(block[2], inner_products(block, W, R), self.bits, theta, one_each)
            self._record(objective(tracked[2], inner_products(tracked, W, R), theta, one_each))
        self._linear, self.database_hash_ = unstandardize(W, mean, scale), unstandardize(R, mean, scale)
        return signs(self.database_hash_.outputs(X)).astype(np.int8)

    def _block_size(self, X: Floats) -> int:
        enough = max(_LEAST_BLOCK, _POINTS_PER_FEATURE * X.shape[1])
        return super()._block_size(X) if self.block else min(super()._block_size(X), enough)

    def _learn_hash(self, X: Floats, codes: Signs) -> Linear:
        return self._linear


def inner_products(block: Block, W: Floats, R: Floats) -> Floats:
    """Return the inner products of the codes of both sides; 0 for no bits.

    Args:
        block: Queries, database points, and which pairs are similar.
        W: The queries' functions.
        R: The database's functions.

    Returns:
        (m, n) integers, in float32.
    """
    product: Floats = signs(block[0] @ W) @ signs(block[1] @ R).T
    return product


def build(bits: int, **options: Any) -> LinLin:
    """Build `lin_lin`."""
    return LinLin(bits, **options)
