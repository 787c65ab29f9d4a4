"""`cosdish`, `cosdish_d`: column-sampling discrete supervised hashing (Kang, Li and Zhou, 2016).

    S      (n, n) 1 for similar points and -r for others, so that its entries sum to 0; never held
    B      (n, c) the codes, +1/-1, of small |c S - B B'|^2
    Omega  the sampled columns of S in a round; the other points are the rest

In turn: the sampled codes bit by bit, each a binary quadratic program (`quadratic`), exact in that it never raises
|c S - B B'|^2 over the sampled columns; and the rest in closed form, sign(S B_Omega), the codes that agree most with
S in inner products, old bits kept at ties. The second step may raise the objective, and a round reads a few columns
only: the codes of the best round are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets
from ..learn.similarity import SharedTags, sum_by
from .arrays import Signs, signs_of
from .solvers.binary_quadratic import large_signs
from .two_step import TwoStep
from .validation import check_count

Doubles = NDArray[np.float64]
_NOTHING = 1e-9  # of the largest pull: a tie up to rounding


class COSDISH(TwoStep):
    """`rounds` of `columns` sampled points (c by default), with `alternations` each."""

    name = "cosdish"

    def __init__(
        self, bits: int, *, rounds: int = 10, alternations: int = 3, columns: int | None = None, **shared: Any
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
            B = one_round(similar, B, omega, self.alternations)
            objective = similar.objective(B)
            self._record(objective)
            if objective < least:
                best, least = B, objective
        return best


class SimilarityOfSets:
    """Products with S by label set: its rows and columns are alike for all points of a set."""

    def __init__(self, labels: LabelSets) -> None:
        self.ids, self.count = labels.ids.astype(np.int64), labels.set_count
        self._shared = SharedTags(labels, labels)
        self._sets = np.arange(self.count)
        sizes = labels.sizes.astype(np.float64)
        pairs, n = float(sizes @ self.similar(sizes[:, None])[:, 0]), len(labels)
        self.ratio = pairs / (n * n - pairs)
        self._squares = pairs + self.ratio**2 * (n * n - pairs)  # |S|^2

    def similar(self, sums: Doubles) -> Doubles:
        """(K, c) A T: over the sets similar to each, the sum of T."""
        return self._shared.sum_columns(self._sets, sums)

    def columns(self, omega: NDArray[np.int64]) -> Doubles:
        """(K, m) the columns of S of these points, a row for each label set."""
        shared = self._shared.sum_rows(self.ids[omega], np.eye(len(omega)))
        block: Doubles = (1 + self.ratio) * shared - self.ratio
        return block

    def sums(self, B: Signs) -> Doubles:
        """(K, c) sums of codes by label set."""
        return sum_by(self.ids, B.astype(np.float64), self.count)

    def objective(self, B: Signs) -> float:
        """|c S - B B'|^2 a pair, as c^2 |S|^2 - 2 c tr(B'S B) + |B'B|^2."""
        bits, sums = B.shape[1], self.sums(B)
        agreement = (1 + self.ratio) * (sums * self.similar(sums)).sum() - self.ratio * (sums.sum(axis=0) ** 2).sum()
        total = bits**2 * self._squares - 2 * bits * agreement + (gram(B) ** 2).sum()
        return float(total) / len(B) ** 2


def one_round(similar: SimilarityOfSets, B: Signs, omega: NDArray[np.int64], alternations: int) -> Signs:
    """The codes after some alternations on the sampled columns. O(n c^2) each."""
    B, S = B.copy(), similar.columns(omega)  # (K, m)
    rest = np.ones(len(B), dtype=bool)
    rest[omega] = False
    among = S[similar.ids[omega]]  # (m, m)
    for _ in range(alternations):
        sampled = B[omega]
        pull = S.T @ (similar.sums(B) - sum_by(similar.ids[omega], sampled.astype(np.float64), similar.count))
        B[omega] = sampled = sampled_codes(sampled, among, pull, gram(B) - gram(sampled))
        B[rest] = rest_codes(S @ sampled, B, similar.ids)[rest]
    return B


def sampled_codes(B: Signs, S: Doubles, pull: Doubles, gram_of_rest: Doubles) -> Signs:
    """(m, c) the sampled codes, bit by bit, of less |c S - B B'|^2 over the sampled columns of all rows.

    S (m, m) among the sampled, pull (m, c) = S'B over the rest, gram_of_rest (c, c) = B'B over the rest. With the other
    bits fixed, a bit b is to raise b'R b + p'b: one more sign, kept at +1, makes p a row and column of the matrix.
    """
    codes, bits = B.astype(np.float64), B.shape[1]
    for k in range(bits):
        others = np.delete(codes, k, axis=1)
        A = np.zeros((len(codes) + 1, len(codes) + 1))
        A[1:, 1:] = bits * S - others @ others.T
        A[0, 1:] = A[1:, 0] = (bits * pull[:, k] - others @ np.delete(gram_of_rest[:, k], k)) / 2
        signs = large_signs(A, np.concatenate([[1.0], codes[:, k]]))
        codes[:, k] = signs[1:] * signs[0]
    return codes.astype(np.int8)


def rest_codes(pull: Doubles, B: Signs, ids: NDArray[np.int64]) -> Signs:
    """sign(S B_Omega), given by label set, for each point; where it is 0 up to rounding, the point's old bit."""
    pull = np.where(np.abs(pull) <= _NOTHING * np.abs(pull).max(initial=0), 0.0, pull)
    return signs_of(pull[ids], B)


def gram(B: Signs) -> Doubles:
    """B'B; float32 counts exactly to 16 million."""
    codes = B.astype(np.float32)
    product: Doubles = (codes.T @ codes).astype(np.float64)
    return product


def build(bits: int, **options: Any) -> COSDISH:
    """`cosdish` of so many bits, or `cosdish_d` with `whole`."""
    return COSDISH(bits, **options)
