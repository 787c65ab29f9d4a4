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
    """What every metric also takes, and passes to `Ranking`."""

    relevance: Any
    device: str
    threads: int | None


# In each signature, a line for what all metrics take and one for what this one takes.
# fmt: off

def mean_average_precision(
    query_codes: Any, database_codes: Any, query_labels: Any = None, database_labels: Any = None,
    *, bits: int, k: int | None = None, ties: Ties = "expected", divisor: Divisor = "retrieved",
    **options: Unpack[Options],
) -> float:
    """Return the mean over the queries of the average precision of the first k, or of the whole ranking.

    Args:
        query_codes: packed, (queries, ceil(bits / 8)).
        database_codes: packed, (database, ceil(bits / 8)).
        query_labels: in any form that `LabelSets.of` takes.
        database_labels: the same for the database.
        bits: the code length.
        k: of the first k; of the whole ranking unless given.
        ties: "expected", the expectation over all orders of tied items, or "stable", in database order.
        divisor: what the sum of precisions is divided by: the relevant items among the first k ("retrieved", as the
            published programs do), or the smaller of k and all relevant items ("min").
        **options: relevance, device and threads, as of `Ranking`.

    Returns:
        The mean, from 0 to 1.
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.mean_average_precision(k=k, ties=ties, divisor=divisor)


def average_precisions(
    query_codes: Any, database_codes: Any, query_labels: Any = None, database_labels: Any = None,
    *, bits: int, k: int | None = None, ties: Ties = "expected", divisor: Divisor = "retrieved",
    **options: Unpack[Options],
) -> Floats:
    """Return (queries,), the average precision of each query.

    Args:
        query_codes, database_codes, query_labels, database_labels, bits: as of `mean_average_precision`.
        k, ties, divisor: as of `mean_average_precision`.
        **options: as of `mean_average_precision`.

    Returns:
        Array (queries,), from 0 to 1; 0 for a query without any relevant item.
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.average_precisions(k=k, ties=ties, divisor=divisor)


def average_precision_bounds(
    query_codes: Any, database_codes: Any, query_labels: Any = None, database_labels: Any = None,
    *, bits: int, k: int | None = None, divisor: Divisor = "retrieved", **options: Unpack[Options],
) -> tuple[float, float]:
    """Return the lowest and the highest mean average precision over all orders inside the ties.

    Args:
        query_codes, database_codes, query_labels, database_labels, bits: as of `mean_average_precision`.
        k, divisor: as of `mean_average_precision`.
        **options: as of `mean_average_precision`.

    Returns:
        The lowest mean and the highest.
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.average_precision_bounds(k=k, divisor=divisor)


def precision_at(
    query_codes: Any, database_codes: Any, query_labels: Any = None, database_labels: Any = None,
    *, bits: int, ks: Sequence[int], ties: Ties = "expected", **options: Unpack[Options],
) -> Floats:
    """Return (len(ks),), the mean share of the first k that is relevant; k beyond the database means all of it.

    Args:
        query_codes, database_codes, query_labels, database_labels, bits: as of `mean_average_precision`.
        ks: the lengths of the lists to look at, each at least 1.
        ties: "expected" or "stable".
        **options: as of `mean_average_precision`.

    Returns:
        Array (len(ks),), one mean precision for each k.
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.precision_at(ks, ties=ties)


def recall_at(
    query_codes: Any, database_codes: Any, query_labels: Any = None, database_labels: Any = None,
    *, bits: int, ks: Sequence[int], ties: Ties = "expected", **options: Unpack[Options],
) -> Floats:
    """Return (len(ks),), the mean share of a query's relevant items that is among the first k.

    Args:
        query_codes, database_codes, query_labels, database_labels, bits: as of `mean_average_precision`.
        ks: as of `precision_at`.
        ties: "expected" or "stable".
        **options: as of `mean_average_precision`.

    Returns:
        Array (len(ks),), one mean recall for each k; 0 counts for a query without any relevant item.
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.recall_at(ks, ties=ties)


def precision_recall_by_radius(
    query_codes: Any, database_codes: Any, query_labels: Any = None, database_labels: Any = None,
    *, bits: int, empty: Empty = "zero", **options: Unpack[Options],
) -> RadiusCurve:
    """Return precision, recall and items returned by looking up all items within each Hamming radius 0..bits.

    Args:
        query_codes, database_codes, query_labels, database_labels, bits: as of `mean_average_precision`.
        empty: the precision of a look-up that returns nothing: "zero", "one", or "skip" to leave it out of the mean
            (NaN where all are empty). Its recall is 0.
        **options: as of `mean_average_precision`.

    Returns:
        The curve, with one value for each radius.
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.precision_recall_by_radius(empty=empty)


def ndcg_at(
    query_codes: Any, database_codes: Any, query_labels: Any = None, database_labels: Any = None,
    *, bits: int, k: int, gain: Gain = "exponential", ties: Ties = "expected", **options: Unpack[Options],
) -> float:
    """Return the mean normalised discounted cumulative gain of the first k; a grade is the number of labels shared.

    Args:
        query_codes, database_codes, query_labels, database_labels, bits: as of `mean_average_precision`.
        k: the length of the list to look at, at least 1.
        gain: of grade g: 2**g - 1 ("exponential") or g ("linear").
        ties: "expected" or "stable".
        **options: as of `mean_average_precision`.

    Returns:
        The mean, from 0 to 1.
    """
    ranking = Ranking(query_codes, database_codes, query_labels, database_labels, bits=bits, **options)
    return ranking.ndcg_at(k, gain=gain, ties=ties)
