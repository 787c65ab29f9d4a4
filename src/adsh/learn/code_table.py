"""V, the codes of the whole database, as a small table of distinct (label set, code) rows.

    n, c      database points, bits                  Omega   the m sampled queries of this iteration
    V         (n, c) codes of +1/-1, 0 at first      U       (m, c) the network's tanh outputs for Omega
    S         (m, n) 1 similar, -r dissimilar        Q       -2c S'U - 2 gamma Ubar   (under eq. 7)

Where `target` is set, all of S is multiplied by it: similar pairs then aim at u.v = target c.

The update of eq. (9) reads of point j only its code, its label set and, where j is in Omega, u_j. Points outside Omega
with one label set and one code therefore stay equal, and one row stands for all of them. An update treats every row as
if it had no point in Omega. A point of Omega differs from its row by -2 gamma u_j in Q: where that changes a bit, which
is rare and seen from the arguments of the row's signs, the point is split off and updated by itself. Rows that became
equal are merged. A point never split off is at its label set's first row, so row numbers are kept for the others only:
apart from the labels, neither time nor memory depends on n.

With a given S instead of labels every point is a label set of its own, and the same code is the dense
algorithm. With separate queries (eq. 3) Omega indexes the queries, nothing is split off, and gamma is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.bits import check_bits
from ..labels import LabelSets, smallest_unsigned
from .last_update import LastUpdate
from .outputs import Outputs, as_outputs, load_kernels
from .rows import Rows, RowTable
from .similarity import Floats, GivenPairs, Indices, SharedTags, Similarity, sum_by, weighted
from .sweep import sweep, zero_tolerance

UNLABELLED = ("network", "dissimilar")
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Sample:
    """Omega: its distinct label sets, and how many database points are similar to each of its points."""

    omega: Indices  # (m,)
    label_sets: Indices  # (k,)  the distinct label sets in Omega
    member: Indices  # (m,)  which of them each point has
    similar: Floats  # (m,)  database points similar to each
    ratio: float  # r = similar pairs / dissimilar pairs


class CodeTable:
    """V for labelled points: `update` is eq. (9), `gram` and `similarity_sums` feed the network's step.

    Args:
        labels: of the database, in any form `LabelSets.of` takes.
        bits: the code length.
        queries: labels of separate queries (eq. 3); None samples queries from the database (eq. 4).
        unlabelled: "network": points without a label take no part, and keep the code 0 here; "dissimilar": they take
            part, similar to nothing.
        start: (n, c) codes of +1/-1 to start from, instead of 0.
    """

    def __init__(
        self, labels: Any, bits: int, *, queries: Any = None, unlabelled: str = "network", start: Any = None
    ) -> None:
        if unlabelled not in UNLABELLED:
            raise InputError(f"unlabelled={unlabelled!r}: choose one of {', '.join(UNLABELLED)}")
        database = LabelSets.of(labels)
        query_sets = database if queries is None else LabelSets.of(queries)
        similarity = SharedTags(query_sets, database)
        excluded = unlabelled == "network"
        sizes = np.where(database.empty & excluded, 0, database.sizes)
        query_sizes = np.where(query_sets.empty & excluded, 0, query_sets.sizes)
        if not sizes.any() or not query_sizes.any():
            raise InputError("no point has a label: give labels, or a similarity matrix")
        if similarity.all_similar(np.flatnonzero(query_sizes), np.flatnonzero(sizes)):
            raise InputError(
                f"every labelled pair is similar ({_some_labels(query_sets)}): there is no dissimilar pair to learn "
                "from; give points of at least two classes"
            )
        if similarity.none_similar(np.flatnonzero(query_sizes), np.flatnonzero(sizes)) and queries is not None:
            raise InputError(
                f"no query shares a label with the database ({_some_labels(query_sets)}; in the database, "
                f"{_some_labels(database)}): use the same label names in both"
            )
        self.label_sets: LabelSets | None = database
        self.query_label_sets: LabelSets | None = query_sets
        self._set_up(similarity, database.ids, query_sets.ids, sizes, check_bits(bits), queries is not None)
        self._can_be_sampled = (query_sizes > 0) | (query_sets.sizes == 0)  # by label set
        self.num_sampleable = int(query_sizes.sum())
        if start is not None:
            self._rows.start_from(np.asarray(start))

    @classmethod
    def from_similarity(cls, S: Any, bits: int, *, separate_queries: bool = False, start: Any = None) -> CodeTable:
        """Return the table for a given S instead of labels.

        Args:
            S: (n, n) similarities between database points, or (m, n) with separate queries; +1 and -1, or sparse.
            bits: the code length.
            separate_queries: whether the rows of S are separate queries (eq. 3).
            start: (n, c) codes of +1/-1 to start from, instead of 0.
        """
        pairs = GivenPairs(S)
        if not separate_queries and pairs.rows != pairs.columns:
            raise InputError(
                f"the similarity matrix is {pairs.rows} x {pairs.columns}: without separate queries it is n x n"
            )
        if pairs.similar_pairs in (0, pairs.rows * pairs.columns):
            kind = "dissimilar" if pairs.similar_pairs == 0 else "similar"
            raise InputError(f"every pair of the similarity matrix is {kind}: there is nothing to learn from")
        table = cls.__new__(cls)
        table.label_sets = table.query_label_sets = None
        columns = np.arange(pairs.columns)
        rows = np.arange(pairs.rows)
        table._set_up(pairs, columns, rows, np.ones(pairs.columns, np.int64), check_bits(bits), separate_queries)
        table._can_be_sampled = np.ones(pairs.rows, dtype=bool)
        table.num_sampleable = pairs.rows
        if start is not None:
            table._rows.start_from(np.asarray(start))
        return table

    def _set_up(
        self,
        similarity: Similarity,
        ids: NDArray[Any],
        query_ids: NDArray[Any],
        sizes: NDArray[np.int64],
        bits: int,
        separate_queries: bool,
    ) -> None:
        self.bits = bits
        self.separate_queries = separate_queries
        self.target = 1.0  # of u.v for similar pairs, as a share of c
        self.fixed_sets = 0  # label sets, the first so many, whose codes no update changes
        self.points = int(sizes.sum())  # n: those that take part in learning
        self.last_update: LastUpdate | None = None
        self.marks: dict[str, str] = {}  # what a checkpoint compares beside the data: nothing
        self._similarity = similarity
        self._query_ids = query_ids
        self._sizes = sizes
        self._sample: Sample | None = None
        self._sample_rows: Indices | None = None  # the rows of its points, as they now are
        self._sampleable: Indices | None = None
        self._rows = RowTable(ids, sizes, bits)

    # What the network's step needs ------------------------------------------------------------------

    def gram(self) -> Floats:
        """Return (c, c) V'V."""
        V = self._rows.codes.astype(np.float64)
        gram: Floats = (V * self._rows.count[:, None]).T @ V
        return gram

    def similarity_sums(self, omega: Any) -> Floats:
        """Return (m, c) SV for the sampled queries, with this sample's r."""
        sums, member = self.similarity_sums_by_set(omega)
        return sums[member]

    def similarity_sums_by_set(self, omega: Any) -> tuple[Floats, Indices]:
        """Return (k, c) SV for each label set of the sampled queries, and (m,) which of them each query has."""
        sample = self._sampled_queries(omega)
        V = self._rows.codes.astype(np.float64)
        by_set = sum_by(self._rows.label_set, V * self._rows.count[:, None], len(self._sizes))  # (K, c)
        similar = self._similarity.sum_columns(sample.label_sets, by_set)
        return self.target * weighted(similar, by_set, sample.ratio), sample.member

    def similarity_squares(self, omega: Any) -> Floats:
        """Return (m,) the sum of S_ij^2 over j: the part of the objective that no code changes."""
        sample = self._sampled_queries(omega)
        squares: Floats = sample.similar + sample.ratio**2 * (self.points - sample.similar)
        return self.target**2 * squares

    def codes_of(self, omega: Any) -> NDArray[np.int8]:
        """Return (m, c) V of those database points."""
        return self._rows.codes[self.rows_of(omega)]

    def rows_of(self, omega: Any) -> Indices:
        """Return (m,) the rows of those database points."""
        sample = self._sampled_queries(omega)
        if self._sample_rows is None:
            self._sample_rows = self._rows.rows_of(sample.omega)
        return self._sample_rows

    def draw(self, m: int, rng: np.random.Generator) -> Indices:
        """Return Omega: m of the points that can be sampled, without replacement; the cost does not depend on n."""
        n = len(self._query_ids)
        if m > self.num_sampleable:
            raise InputError(f"m={m}: only {self.num_sampleable} points can be sampled, give no more")
        if self.num_sampleable == n:
            return rng.choice(n, m, replace=False)
        if self._sampleable is None and 16 * self.num_sampleable > n and self.num_sampleable > 2 * m:
            drawn = np.empty(0, dtype=np.int64)  # most draws hit a labelled point: reject the others
            while len(drawn) < m:
                more = rng.integers(n, size=2 * m * n // self.num_sampleable)
                more = np.concatenate([drawn, more[self._can_be_sampled[self._query_ids[more]]]])
                drawn = more[np.sort(np.unique(more, return_index=True)[1])]  # each once, in the order drawn
            return drawn[:m]
        if self._sampleable is None:
            blocks = range(0, n, _BLOCK)
            found = [np.flatnonzero(self._can_be_sampled[self._query_ids[b : b + _BLOCK]]) + b for b in blocks]
            self._sampleable = np.concatenate(found)
        return self._sampleable[rng.choice(len(self._sampleable), m, replace=False)]

    # Learn V with Theta fixed -----------------------------------------------------------------------

    def update(self, omega: Any, outputs: Any, gamma: float, *, signed: bool = False) -> float:
        """Update V by one sweep of eq. (9) over the bits, given the outputs of the sampled queries.

        Rows are updated once for all their members. O(m c^2 + rows c^2), independent of n.

        Args:
            omega: (m,) the sampled points.
            outputs: (m, c) U, a NumPy array or a torch tensor.
            gamma: weight of |v_i - u_i|^2; 0 with separate queries.
            signed: put sign(U) in the S'U term of Q, as the authors' MATLAB program does.

        Returns:
            The objective J of eq. (3) or (4) after the update, over m x n pairs.
        """
        if self.separate_queries and gamma:
            raise InputError(f"gamma={gamma} with separate queries: eq. (3) has no gamma term, pass 0")
        sample = self._sampled_queries(omega)
        m, c = len(sample.omega), self.bits
        groups = sample.member if self.separate_queries else self.rows_of(omega)  # (m,)
        U = as_outputs(outputs, groups, c)
        gram, sums, by_row, largest = self._output_sums(U, sample)
        S_U = self._transposed_sums(sample, sums)  # (K, c)  S'U by label set
        Q_of_sets = -2 * c * S_U
        if signed:
            signs = sum_by(sample.member, np.where(U.here >= 0, 1.0, -1.0), len(sample.label_sets))
            Q_of_sets = -2 * c * self._transposed_sums(sample, signs)

        before = self._rows.codes.astype(np.float64)
        V, Q, tolerance = before.copy(), Q_of_sets[self._rows.label_set], zero_tolerance(c, m)  # (rows, c)
        arguments = sweep(V, gram, Q, tolerance)  # eq. (9)
        fixed = self._rows.label_set < self.fixed_sets  # each v_j has an update of its own, so others do not notice
        V[fixed] = before[fixed]
        gamma_term = 0.0
        if by_row is not None:
            # While the bits so far agree, a point's arguments are its row's less 2 gamma u_j: few cross 0.
            odd, u = U.past(-2 * gamma * V, np.abs(arguments) - 2 * tolerance, largest)
            if self.fixed_sets:
                odd, u = odd[~fixed[groups[odd]]], u[~fixed[groups[odd]]]
            own = before[groups[odd]]
            if len(odd):
                sweep(own, gram, Q[groups[odd]] - 2 * gamma * u, tolerance)
                differs = np.any(own != V[groups[odd]], axis=1)
                odd, own, u = odd[differs], own[differs], u[differs]
            agreement = float((V * by_row).sum()) + float(((own - V[groups[odd]]) * u).sum())  # the sum of v_j.u_j
            gamma_term = gamma * (m * c + float(np.trace(gram)) - 2 * agreement)
            if len(odd):
                groups = groups.copy()
                groups[odd] = self._rows.split(sample.omega[odd], groups[odd])
                V = np.concatenate([V, own])
        if not np.array_equal(V, before):
            self._rows.codes = V.astype(np.int8)
            new_rows = self._rows.merge()
            self._sample_rows = None if self.separate_queries else new_rows[groups]
        self.last_update = LastUpdate(gram, sample.label_sets, self.target * sums, sample.ratio, m)
        return gamma_term + self._pair_term(sample, gram, S_U)

    def _output_sums(self, U: Outputs, sample: Sample) -> tuple[Floats, Floats, Floats | None, float]:
        """Return U'U, the sums of U by label set of Omega and, for eq. (4), by row, and the largest |u|."""
        by_row = None
        if self.separate_queries:
            gram, sums, largest = U.sums(len(sample.label_sets))  # (c, c), (k, c)
        else:
            gram, by_row, largest = U.sums(len(self._rows.count))  # (c, c), (rows, c)
            sums = sum_by(self._rows.label_set, by_row, len(self._sizes))[sample.label_sets]  # a row has one label set
        if not np.isfinite(gram).all():
            raise InputError("outputs hold NaN or infinity")
        return gram, sums, by_row, largest

    def _pair_term(self, sample: Sample, gram: Floats, S_U: Floats) -> float:
        """Return |UV' - cS|^2 = |UV'|^2 - 2c tr(V'S'U) + c^2 |S|^2."""
        m, c, r, rows = len(sample.omega), self.bits, sample.ratio, self._rows
        dissimilar = m * self.points - sample.similar.sum()
        return float(
            (self.gram() * gram).sum()
            - 2 * c * (rows.codes * S_U[rows.label_set]).sum(axis=1) @ rows.count
            + (self.target * c) ** 2 * (sample.similar.sum() + r * r * dissimilar)
        )

    def _transposed_sums(self, sample: Sample, sums: Floats) -> Floats:
        """Return (K, c) S'X by label set of the database, from the sums of X by label set of Omega."""
        return self.target * weighted(self._similarity.sum_rows(sample.label_sets, sums), sums, sample.ratio)

    def _sampled_queries(self, omega: Any) -> Sample:
        """Return Omega's label sets and r; cached, since an iteration uses the same Omega several times."""
        omega = np.asarray(omega.cpu() if hasattr(omega, "cpu") else omega, dtype=np.int64)
        if self._sample is not None and np.array_equal(omega, self._sample.omega):
            return self._sample
        if omega.ndim != 1 or not len(omega):
            raise InputError(f"omega has shape {omega.shape}: give the (m,) indices of the sampled points")
        if omega.min() < 0 or omega.max() >= len(self._query_ids):
            odd = omega.min() if omega.min() < 0 else omega.max()
            raise InputError(f"omega holds {odd}, but there are {len(self._query_ids)} points to sample, from 0 on")
        if len(np.unique(omega)) < len(omega):
            raise InputError("omega holds an index twice: sample without replacement")
        label_sets, member = np.unique(self._query_ids[omega], return_inverse=True)
        if not self._can_be_sampled[label_sets].all():
            raise InputError("omega holds a point without a label: draw with table.draw()")
        label_sets = label_sets.astype(np.int64)
        similar = self._similarity.sum_columns(label_sets, self._sizes.astype(np.float64)[:, None])[member, 0]
        dissimilar = len(omega) * self.points - similar.sum()
        ratio = float(similar.sum() / dissimilar) if dissimilar else 0.0
        self._sample = Sample(omega.copy(), label_sets, member, similar, ratio)
        self._sample_rows = None
        return self._sample

    def set_codes(self, codes: NDArray[np.int8], count: Indices) -> None:
        """Give each label set a code, and all of its points with it, in place of learning them.

        Codes of new label sets are then those that eq. (9) leads to from a sample with these codes as outputs.

        Args:
            codes: (K, c) +1/-1, one for each of `rows`, of a table that was never updated.
            count: (K,) queries of each label set in that sample.
        """
        rows, V = self._rows, codes.astype(np.float64)
        rows.codes = codes.astype(np.int8)
        weights = np.zeros((len(self._sizes), 1))
        weights[rows.label_set, 0] = count
        similar = float(count @ self._similarity.sum_columns(rows.label_set, weights)[:, 0])
        total = float(count.sum())
        sums = V * count[:, None]
        self.last_update = LastUpdate(
            V.T @ sums, rows.label_set, sums, similar / max(total**2 - similar, 1.0), int(total)
        )

    def warm_up(self, m: int, device: Any) -> None:
        """Load on a GPU what updates from m points will run there."""
        load_kernels(m, self.bits, device)

    # The codes --------------------------------------------------------------------------------------

    @property
    def askers(self) -> int:
        """The earlier name of `num_sampleable`."""
        return self.num_sampleable

    @property
    def rows(self) -> Rows:
        """The distinct rows, as they are now."""
        return Rows(self._rows.label_set, self._rows.codes, self._rows.count)

    def dense(self) -> NDArray[np.int8]:
        """Return (n, c) codes of all points, +1/-1; 0 where there is none yet, or no label."""
        codes = np.concatenate([self._rows.codes, np.zeros((1, self.bits), dtype=np.int8)])
        of_each: NDArray[np.int8] = codes[self.row_numbers()]
        return of_each

    def row_numbers(self) -> NDArray[np.unsignedinteger[Any]]:
        """Return (n,) the row of each point, in the smallest type that fits; len(rows) where it has none."""
        return self._rows.numbers()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that updates change, as arrays, for `restore` of a table of the same labels."""
        last = self.last_update
        return self._rows.state() | ({} if last is None else last.arrays())

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Put the state of another table of the same labels in place."""
        self._rows.restore(state)
        self._sample_rows = None
        self.last_update = LastUpdate.of(state)

    def state_bytes(self, updates: int) -> int:
        """Return an upper bound of the bytes of `state`, once that many points have been sampled."""
        sampled = 0 if self.separate_queries else min(updates, self.num_sampleable)
        sets, query_sets, c = len(self._sizes), len(self._can_be_sampled), self.bits
        last = query_sets * 8 * (1 + c) + 8 * c * c + 16  # the last update's label sets, sums, U'U, r and m
        return sampled * (32 + c) + sets * (24 + c) + last

    def number_bytes(self, updates: int) -> int:
        """Return an upper bound of the bytes of `row_numbers`, once that many points have been sampled."""
        return len(self._rows.ids) * smallest_unsigned(len(self._rows.count) + updates + 1).itemsize


def _some_labels(labels: LabelSets) -> str:
    names = [str(name) for name in labels.names[:3]]
    return f"labels: {', '.join(names)}{', …' if len(labels.names) > 3 else ''}"
