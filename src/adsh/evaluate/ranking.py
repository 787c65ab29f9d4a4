"""Queries ranked against a database by Hamming distance, and every metric of that ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.bits import Codes, as_codes, check_bits, check_codes
from ..labels import LabelSets, check_columns
from . import ordered
from . import ties as expected
from .counters import Tally
from .counting import count
from .pairing import Pairing
from .relevance import GivenGrades, Grades, Relevance, SharedLabels
from .ties import Divisor

Floats = NDArray[np.float64]
Ties = Literal["expected", "stable"]
Empty = Literal["zero", "skip", "one"]
Gain = Literal["exponential", "linear"]


@dataclass(frozen=True)
class RadiusCurve:
    """Hash look-up: what a query returns within each Hamming radius 0..c, averaged over the queries."""

    radius: NDArray[np.int64]  # (c + 1,)
    precision: Floats
    recall: Floats
    returned: Floats  # items
    empty: NDArray[np.int64]  # queries that return nothing


class Ranking:
    """Queries ranked against a database, counted once at first use and then read by every metric.

    An item is relevant to a query where they share a label, or where `relevance` is above 0; its grade is the number
    of labels shared, or that entry.

    Args:
        query_codes: packed, (queries, ceil(bits / 8)).
        database_codes: packed, (database, ceil(bits / 8)).
        query_labels: in any form that `LabelSets.of` takes.
        database_labels: the same for the database.
        bits: the code length.
        relevance: a (queries, database) matrix of grades, dense or scipy-sparse, instead of labels.
        leave_one_out: the queries are the database, and each is ranked against the others.
        graded: whether to count by grade at once; otherwise `ndcg_at` counts again.
        device: "auto" for the GPU where torch is loaded and finds one, "cpu", or a torch device.
        threads: that count; None for all cores.
    """

    def __init__(  # noqa: PLR0913  # a public constructor
        self,
        query_codes: Any,
        database_codes: Any,
        query_labels: Any = None,
        database_labels: Any = None,
        *,
        bits: int,
        relevance: Any = None,
        leave_one_out: bool = False,
        graded: bool = False,
        device: str = "auto",
        threads: int | None = None,
    ) -> None:
        self.bits = check_bits(bits)
        queries, database = _checked_pair(query_codes, database_codes, self.bits)
        self.queries, self.database = len(queries), len(database)
        known = _relevance(query_labels, database_labels, relevance, self.queries, self.database)
        if leave_one_out:
            if not np.array_equal(queries, database) or len(queries) < 2:
                raise InputError("leave_one_out needs two or more items, the same as queries and as database")
            self._pairing = Pairing.among(queries, known, self.bits)
            self.database -= 1
        else:
            self._pairing = Pairing.of(queries, database, known, self.bits)
        if threads is not None and threads < 1:
            raise InputError(f"threads={threads}: give a whole number from 1, or None for all cores")
        self._graded, self._device, self._threads = graded, device, threads
        self._counted: dict[bool, Tally] = {}

    def __repr__(self) -> str:
        return f"Ranking({self.queries:,} queries x {self.database:,} items, {self.bits} bits)"

    @property
    def without_relevant(self) -> int:
        """Queries to which no item is relevant: they count 0 in every mean."""
        return int(self.queries - np.count_nonzero(self._per_query(self._relevant.sum(axis=1))))

    @property
    def pairs_by_distance(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(c + 1,) pairs of a query and a relevant item at each distance, and of a query and another item."""
        times = np.bincount(self._pairing.places, minlength=len(self._relevant))
        relevant = times @ self._relevant
        return relevant, times @ self._total - relevant

    def average_precisions(
        self, *, k: int | None = None, ties: Ties = "expected", divisor: Divisor = "retrieved"
    ) -> Floats:
        """Return each query's average precision of the first k, or of the whole ranking.

        Args:
            k, ties, divisor: as of `mean_average_precision`.

        Returns:
            Array (queries,), from 0 to 1; 0 for a query without any relevant item.
        """
        _check_choice("divisor", divisor, Divisor)
        k = None if k is None else self._place(k)
        if _stable(ties):
            last = k or self.database
            return self._in_order(lambda grades: ordered.average_precision(grades, last, divisor))
        return self._per_query(expected.average_precision(self._total, self._relevant, k, divisor))

    def mean_average_precision(
        self, *, k: int | None = None, ties: Ties = "expected", divisor: Divisor = "retrieved"
    ) -> float:
        """Return the mean average precision.

        Args:
            k: of the first k; of the whole ranking unless given.
            ties: "expected", the expectation over all orders of tied items, or "stable", in database order.
            divisor: what the sum of precisions is divided by: the relevant items among the first k ("retrieved"), or
                the smaller of k and all relevant items ("min").

        Returns:
            The mean over the queries, from 0 to 1.
        """
        return float(self.average_precisions(k=k, ties=ties, divisor=divisor).mean())

    def chance(self, *, k: int | None = None, divisor: Divisor = "retrieved") -> float:
        """Return the mean average precision that a random order has, in expectation."""
        k = None if k is None else self._place(k)
        total, relevant = (counts.sum(axis=1, keepdims=True) for counts in (self._total, self._relevant))
        return float(self._per_query(expected.average_precision(total, relevant, k, divisor)).mean())

    def average_precision_bounds(self, *, k: int | None = None, divisor: Divisor = "retrieved") -> tuple[float, float]:
        """Return the lowest and the highest mean average precision over all orders inside the ties."""
        _check_choice("divisor", divisor, Divisor)
        k = None if k is None else self._place(k)
        low, high = expected.average_precision_bounds(self._total, self._relevant, k, divisor)
        return float(self._per_query(low).mean()), float(self._per_query(high).mean())

    def precision_at(self, ks: Sequence[int], *, ties: Ties = "expected") -> Floats:
        """Return (len(ks),), the mean share of the first k that is relevant; k beyond the database means all of it."""
        places = np.array([self._place(k) for k in ks], dtype=np.int64)
        precision: Floats = self._hits(places, ties).mean(axis=0) / places
        return precision

    def precisions_at(self, k: int, *, ties: Ties = "expected") -> Floats:
        """Return (queries,), the share of the first k that is relevant, of each query."""
        place = self._place(k)
        precisions: Floats = self._hits(np.array([place], dtype=np.int64), ties)[:, 0] / place
        return precisions

    def recall_at(self, ks: Sequence[int], *, ties: Ties = "expected") -> Floats:
        """Return (len(ks),), the mean share of a query's relevant items that is among the first k."""
        places = np.array([self._place(k) for k in ks], dtype=np.int64)
        all_relevant = self._per_query(self._relevant.sum(axis=1))
        recall: Floats = (self._hits(places, ties) / np.maximum(all_relevant, 1)[:, None]).mean(axis=0)
        return recall

    def precision_recall_by_radius(self, *, empty: Empty = "zero") -> RadiusCurve:
        """Return precision and recall of looking up all items within a Hamming radius, for each radius 0..c.

        A look-up that returns nothing has no precision: it counts 0 ("zero"), 1 ("one"), or is left out of
        the mean ("skip"; NaN where all look-ups are empty). Its recall is 0.
        """
        _check_choice("empty", empty, Empty)
        returned = np.cumsum(self._total, axis=1)
        relevant = np.cumsum(self._relevant, axis=1)
        is_empty = returned == 0
        precision = np.where(is_empty, float(empty == "one"), relevant / np.maximum(returned, 1))
        recall = relevant / np.maximum(relevant[:, -1:], 1)
        empties = self._per_query(is_empty).sum(axis=0)
        counted = np.full(self.bits + 1, self.queries) - (empties if empty == "skip" else 0)
        return RadiusCurve(
            radius=np.arange(self.bits + 1),
            precision=self._per_query(precision).sum(axis=0) / np.where(counted > 0, counted, np.nan),
            recall=self._per_query(recall).mean(axis=0),
            returned=self._per_query(returned).mean(axis=0),
            empty=empties,
        )

    def ndcg_at(self, k: int, *, gain: Gain = "exponential", ties: Ties = "expected") -> float:
        """Return the mean normalised discounted cumulative gain of the first k, by grade.

        The discount of place i is 1 / log2(1 + i).

        Args:
            k: the length of the list to look at; k beyond the database means all of it.
            gain: of grade g: 2**g - 1 ("exponential") or g ("linear").
            ties: "expected" or "stable", as of `mean_average_precision`.

        Returns:
            The mean over the queries, from 0 to 1.
        """
        _check_choice("gain", gain, Gain)
        k = self._place(k)
        levels = np.arange(self._pairing.relevance.highest + 1, dtype=np.float64)
        # NDCG does not depend on the scale of the gains: the highest is scaled to 1, so that none overflows.
        gains = np.exp2(levels - levels[-1]) - np.exp2(-levels[-1]) if gain == "exponential" else levels
        if _stable(ties):
            return float(self._in_order(lambda grades: ordered.ndcg(gains[grades], k)).mean())
        tally = self._tally(graded=True)  # (q, grades, c + 1)
        by_grade = tally.sum(axis=2)[:, ::-1]  # the ideal ranking: highest grade first
        ideal = expected.dcg(by_grade, by_grade * gains[::-1], k)
        reached = expected.dcg(tally.sum(axis=1), np.einsum("qgd,g->qd", tally, gains), k)
        return float(self._per_query(reached / np.where(ideal > 0, ideal, 1.0)).mean())

    @cached_property
    def _total(self) -> NDArray[np.int64]:
        """(q, c + 1) items at each distance from each distinct query."""
        total: NDArray[np.int64] = self._tally().sum(axis=1)
        return total

    @cached_property
    def _relevant(self) -> NDArray[np.int64]:
        relevant: NDArray[np.int64] = self._tally()[:, 1:].sum(axis=1)
        return relevant

    def _tally(self, graded: bool = False) -> Tally:
        """Return the counts; those by grade are counted once more, if the first pass was without grades."""
        graded = graded or self._graded
        if graded not in self._counted:
            self._counted[graded] = count(self._pairing, graded=graded, threads=self._threads, device=self._device)
        return self._counted[graded]

    def _hits(self, places: NDArray[np.int64], ties: Ties) -> Floats:
        """Return (queries, places), the relevant items among the first k."""
        if _stable(ties):
            return self._in_order(lambda grades: ordered.relevant_in_first(grades, places))
        hits = [expected.relevant_in_first(self._total, self._relevant, int(k)) for k in places]
        return self._per_query(np.stack(hits, axis=1) if hits else np.empty((len(self._relevant), 0)))

    def _in_order(self, metric: Callable[[Grades], Any]) -> Floats:
        """Return a metric of each query's items in stable order."""
        values = [metric(grades) for grades in ordered.rankings(self._pairing)]
        return self._per_query(np.array(values, dtype=np.float64))

    def _per_query(self, values: NDArray[Any]) -> NDArray[Any]:
        return values[self._pairing.places]

    def _place(self, k: int) -> int:
        """Return k as given by the user, at most the size of the database."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise InputError(
                f"k={k!r}: give a whole number from 1; k=None, where it is accepted, means the whole database"
            )
        return min(int(k), self.database)


def _stable(ties: Ties) -> bool:
    _check_choice("ties", ties, Ties)
    return ties == "stable"


def _check_choice(name: str, value: str, choices: Any) -> None:
    if value not in get_args(choices):
        raise InputError(f"{name}={value!r}: give " + " or ".join(repr(choice) for choice in get_args(choices)))


def _checked_pair(query_codes: Any, database_codes: Any, bits: int) -> tuple[Codes, Codes]:
    queries, database = as_codes(query_codes, "query codes"), as_codes(database_codes, "database codes")
    if queries.shape[1] != database.shape[1]:
        raise InputError(
            f"query codes have {queries.shape[1]} bytes a row and database codes {database.shape[1]}: "
            "encode both with one model"
        )
    check_codes(queries, bits, "query codes")
    check_codes(database, bits, "database codes")
    if not len(queries) or not len(database):
        raise InputError(
            f"there are {len(queries)} query codes and {len(database)} database codes: give at least one of each"
        )
    return queries, database


def _relevance(query_labels: Any, database_labels: Any, matrix: Any, queries: int, database: int) -> Relevance:
    if matrix is not None:
        if query_labels is not None or database_labels is not None:
            raise InputError("labels and relevance are both given: give labels of queries and database, or relevance")
        return GivenGrades(matrix, queries, database)
    if query_labels is None or database_labels is None:
        raise InputError("labels are missing: give labels of queries and database, or relevance=")
    if getattr(database_labels, "ndim", 1) == 2:
        check_columns(query_labels, "query labels", database_labels.shape[1], "database labels have")
    sides = []
    for labels, codes, what in ((query_labels, queries, "query"), (database_labels, database, "database")):
        sides.append(LabelSets.of(labels))
        if len(sides[-1]) != codes:
            raise InputError(
                f"there are {len(sides[-1])} {what} labels for {codes} {what} codes: give one label a code"
            )
    return SharedLabels(*sides)
