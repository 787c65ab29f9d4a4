"""`cosdish`, `cosdish_d`: column-sampling discrete supervised hashing (Kang, Li and Zhou, 2016).

    S      (n, n) 1 for similar points and -r for others; never in memory
    r      similar / dissimilar pairs of the sampled columns, so that their entries sum to 0
    B      (n, c) the codes, +1/-1, of small |c S - B B'|^2
    Omega  the sampled columns of S in a round; the other points are the rest

A round alternates two steps. The sampled codes are updated bit by bit: bit k fits what the bits before it left of
c S over the sampled columns, a binary quadratic program (`solvers.binary_quadratic`). The other codes have a closed
form, sign(S B_Omega), the codes whose inner products agree most with S; ties keep the old bit. Either step may raise
|c S - B B'|^2, and a round reads only a few columns, so the codes of the best round are returned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import DEFAULT_BITS
from ..labels import LabelSets
from ..learn.similarity import SharedTags, sum_by
from .arrays import Signs, signs_of
from .solvers.binary_quadratic import maximize_signs
from .two_step import TwoStep
from .validation import check_count

Doubles = NDArray[np.float64]
_ROUNDING = 1e-9  # of the largest value: a tie up to rounding


class COSDISH(TwoStep):
    """Column-sampling discrete supervised hashing.

    Args:
        bits: Code length.
        rounds: How often points are sampled.
        alternations: How often a round repeats its two steps.
        columns: Points that are sampled in a round; c by default.
        **shared: As of `TwoStep`.
    """

    name = "cosdish"

    def __init__(
        self,
        bits: int = DEFAULT_BITS,
        *,
        rounds: int = 10,
        alternations: int = 3,
        columns: int | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(bits, **shared)
        self.rounds, self.alternations, self.columns = rounds, alternations, columns

    def _check(self, points: int, width: int) -> None:
        super()._check(points, width)
        check_count(self.rounds, "rounds")
        check_count(self.alternations, "alternations")
        if self.columns is not None:
            check_count(self.columns, "columns")

    def _learn_codes(self, X: NDArray[np.float32], labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        assert labels is not None
        similar = SimilarityOfSets(labels)
        B = signs_of(rng.standard_normal((len(labels), self.bits), dtype=np.float32))
        best, least = B, similar.objective(B)
        self._record(least, start=True)
        for _ in range(self.rounds):
            omega = np.sort(rng.choice(len(labels), min(self.columns or self.bits, len(labels)), replace=False))
            B = run_round(similar, B, omega, self.alternations)
            objective = similar.objective(B)
            self._record(objective)
            if objective < least:
                best, least = B, objective
        return best


class SimilarityOfSets:
    """Products with S by label set: all points of a set have the same row and column of S."""

    def __init__(self, labels: LabelSets) -> None:
        self.ids, self.count = labels.ids.astype(np.int64), labels.set_count
        self._shared = SharedTags(labels, labels)
        self._sets = np.arange(self.count)
        self._sizes = sizes = labels.sizes.astype(np.float64)
        pairs, n = float(sizes @ self.similar(sizes[:, None])[:, 0]), len(labels)
        self.ratio = pairs / (n * n - pairs)
        self._squares = pairs + self.ratio**2 * (n * n - pairs)  # |S|^2

    def similar(self, sums: Doubles) -> Doubles:
        """Return (K, c) A T: for each set, the sum of T over the sets similar to it."""
        return self._shared.sum_columns(self._sets, sums)

    def columns(self, omega: NDArray[np.int64]) -> Doubles:
        """Return (K, m) the columns of S for these points, with one row per label set and the r of these columns."""
        shared = self._shared.sum_rows(self.ids[omega], np.eye(len(omega)))
        pairs = float((self._sizes @ shared).sum())
        dissimilar = len(self.ids) * len(omega) - pairs
        ratio = pairs / dissimilar if dissimilar else 0.0
        block: Doubles = (1 + ratio) * shared - ratio
        return block

    def sums(self, B: Signs) -> Doubles:
        """Return (K, c) the sums of the codes by label set."""
        return sum_by(self.ids, B.astype(np.float64), self.count)

    def objective(self, B: Signs) -> float:
        """Return |c S - B B'|^2 per pair, computed as c^2 |S|^2 - 2 c tr(B'S B) + |B'B|^2."""
        bits, sums = B.shape[1], self.sums(B)
        agreement = (1 + self.ratio) * (sums * self.similar(sums)).sum() - self.ratio * (sums.sum(axis=0) ** 2).sum()
        total = bits**2 * self._squares - 2 * bits * agreement + (gram(B) ** 2).sum()
        return float(total) / len(B) ** 2


def run_round(similar: SimilarityOfSets, B: Signs, omega: NDArray[np.int64], alternations: int) -> Signs:
    """Alternate the two steps on the sampled columns; each costs O(n c^2).

    Args:
        similar: Products with S.
        B: (n, c) the codes before.
        omega: (m,) the sampled points.
        alternations: How often to repeat both steps.

    Returns:
        (n, c) the codes after.
    """
    B, S = B.copy(), similar.columns(omega)  # (K, m)
    rest = np.ones(len(B), dtype=bool)
    rest[omega] = False
    among = S[similar.ids[omega]]  # (m, m)
    for _ in range(alternations):
        sampled = B[omega]
        pull = S.T @ (similar.sums(B) - sum_by(similar.ids[omega], sampled.astype(np.float64), similar.count))
        B[omega] = sampled = update_sampled(sampled, among, pull, gram(B) - gram(sampled))
        B[rest] = update_rest(S @ sampled, B, similar.ids)[rest]
    return B


def update_sampled(B: Signs, S: Doubles, pull: Doubles, gram_of_rest: Doubles) -> Signs:
    """Fit each bit of the sampled codes to what the bits before it left of c S over the sampled columns.

    With R the rest of c S among the sampled points and p the pull of the others, bit b should raise b'R b + p'b. One
    more sign, fixed at +1, makes p a row and a column of the matrix. Later bits, still those of the last alternation,
    do not count.

    Args:
        B: (m, c) the sampled codes before.
        S: (m, m) the similarity among the sampled points.
        pull: (m, c) S'B over the other points.
        gram_of_rest: (c, c) B'B over the other points.

    Returns:
        (m, c) the sampled codes after.
    """
    codes, bits = B.astype(np.float64), B.shape[1]
    for k in range(bits):
        before = codes[:, :k]
        A = np.zeros((len(codes) + 1, len(codes) + 1))
        A[1:, 1:] = bits * S - before @ before.T
        A[0, 1:] = A[1:, 0] = (bits * pull[:, k] - before @ gram_of_rest[:k, k]) / 2
        signs = maximize_signs(A, np.concatenate([[1.0], codes[:, k]]))
        codes[:, k] = signs[1:] * signs[0]
    return codes.astype(np.int8)


def update_rest(pull: Doubles, B: Signs, ids: NDArray[np.int64]) -> Signs:
    """Update every code to sign(S B_Omega), computed by label set; 0 up to rounding keeps the old bit.

    Args:
        pull: (K, c) S B_Omega by label set.
        B: (n, c) the codes before.
        ids: (n,) the label set of each point.

    Returns:
        (n, c) the codes after.
    """
    pull = np.where(np.abs(pull) <= _ROUNDING * np.abs(pull).max(initial=0), 0.0, pull)
    return signs_of(pull[ids], B)


def gram(B: Signs) -> Doubles:
    """Return B'B; float32 counts exactly up to 16 million."""
    codes = B.astype(np.float32)
    product: Doubles = (codes.T @ codes).astype(np.float64)
    return product


def build(bits: int, **options: Any) -> COSDISH:
    """Build `cosdish`, or `cosdish_d` with `use_full_database`."""
    return COSDISH(bits, **options)
