"""Metrics of retrieval by Hamming distance: average precision, precision, recall, look-ups by radius, NDCG.

All take packed codes (n, ceil(bits / 8)) of queries and database, and either labels of both (an item is
relevant where it shares a label with the query) or `relevance=`, a (queries, database) matrix of grades.

Learned codes are few, so a ranking is mostly ties, and its metrics depend on how ties are ordered.
ties="expected", the default, is the expectation over all orders, in closed form; ties="stable" keeps
database order inside a tie, as a stable sort does. A query without any relevant item counts 0.

Each function is the method of the same name of `Ranking`; use that class to read several from one count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from .ranking import Empty, Floats, Gain, RadiusCurve, Ranking, Ties
from .ties import Divisor

__all__ = [
    "RadiusCurve",
    "Ranking",
    "average_precision_bounds",
    "average_precisions",
    "mean_average_precision",
    "ndcg_at",
    "precision_at",
    "precision_recall_by_radius",
    "recall_at",
]


class Options(TypedDict, total=False):
    """What every metric also takes, and hands to `Ranking`."""

    relevance: Any
    device: str
    threads: int | None


def mean_average_precision(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any = None,
    database_labels: Any = None,
    *,
    bits: int,
    k: int | None = None,
    ties: Ties = "expected",
    divisor: Divisor = "retrieved",
    **options: Unpack[Options],
) -> float:
    """The mean over the queries of the average precision of the first k, or of the whole ranking.

    The sum of precisions is divided by the relevant items among the first k ("retrieved", as the published
    programs do) or by the smaller of k and the relevant items there are ("min").
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.mean_average_precision(k=k, ties=ties, divisor=divisor)


def average_precisions(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any = None,
    database_labels: Any = None,
    *,
    bits: int,
    k: int | None = None,
    ties: Ties = "expected",
    divisor: Divisor = "retrieved",
    **options: Unpack[Options],
) -> Floats:
    """(queries,) what `mean_average_precision` is the mean of."""
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.average_precisions(k=k, ties=ties, divisor=divisor)


def average_precision_bounds(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any = None,
    database_labels: Any = None,
    *,
    bits: int,
    k: int | None = None,
    divisor: Divisor = "retrieved",
    **options: Unpack[Options],
) -> tuple[float, float]:
    """The lowest and the highest mean average precision that any order inside the ties gives."""
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.average_precision_bounds(k=k, divisor=divisor)


def precision_at(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any = None,
    database_labels: Any = None,
    *,
    bits: int,
    ks: Sequence[int],
    ties: Ties = "expected",
    **options: Unpack[Options],
) -> Floats:
    """(len(ks),) mean share of the first k that is relevant; k beyond the database means all of it."""
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.precision_at(ks, ties=ties)


def recall_at(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any = None,
    database_labels: Any = None,
    *,
    bits: int,
    ks: Sequence[int],
    ties: Ties = "expected",
    **options: Unpack[Options],
) -> Floats:
    """(len(ks),) mean share of a query's relevant items that is among the first k."""
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.recall_at(ks, ties=ties)


def precision_recall_by_radius(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any = None,
    database_labels: Any = None,
    *,
    bits: int,
    empty: Empty = "zero",
    **options: Unpack[Options],
) -> RadiusCurve:
    """Precision, recall and items returned by looking up all items within each Hamming radius 0..bits.

    A look-up that returns nothing has no precision: it counts 0 ("zero"), 1 ("one"), or is left out of the
    mean ("skip"; NaN where all are empty). Its recall is 0.
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.precision_recall_by_radius(empty=empty)


def ndcg_at(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any = None,
    database_labels: Any = None,
    *,
    bits: int,
    k: int,
    gain: Gain = "exponential",
    ties: Ties = "expected",
    **options: Unpack[Options],
) -> float:
    """Mean normalised discounted cumulative gain of the first k; an item's grade is the labels it shares.

    The gain of grade g is 2**g - 1 ("exponential") or g ("linear").
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.ndcg_at(k, gain=gain, ties=ties)
