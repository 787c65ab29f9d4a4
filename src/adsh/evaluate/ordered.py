"""Metrics of one ranking in a given order: its items' grades, nearest first, database order inside a tie."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import as_words
from ..hamming.distances import CodeColumns
from .pairing import Pairing
from .relevance import Grades
from .ties import Divisor, discounts


def rankings(pairing: Pairing) -> Iterator[Grades]:
    """Yield for each distinct query the grades of all items in a stable order by distance."""
    columns, relevance = CodeColumns(pairing.database_codes), pairing.relevance
    distances, scratch = np.empty(len(columns), dtype=columns.distance_type), columns.scratch()
    for number, (words, kind) in enumerate(zip(as_words(pairing.query_codes), pairing.query_kinds, strict=True)):
        columns.distances(words, 0, distances, scratch)
        order = np.argsort(distances, kind="stable")  # a radix sort for these types
        if pairing.leave_one_out:
            order = order[order != number]
        yield relevance.grades(np.array([kind]))[0][relevance.item_kinds[order]]


def average_precision(grades: Grades, k: int, divisor: Divisor) -> float:
    """Return the average precision of the first k.

    Args:
        grades: of all items, nearest first.
        k: how many of them count.
        divisor: "retrieved" or "min", as of `mean_average_precision`.

    Returns:
        From 0 to 1; 0 where none is relevant.
    """
    places = np.flatnonzero(grades[:k]) + 1
    by = len(places) if divisor == "retrieved" else min(k, np.count_nonzero(grades))
    return float((np.arange(1, len(places) + 1) / places).sum() / max(by, 1))


def relevant_in_first(grades: Grades, ks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of the first k are relevant, for each k."""
    return np.searchsorted(np.flatnonzero(grades), ks)


def ndcg(gains: NDArray[np.float64], k: int) -> float:
    """Return the discounted cumulative gain of the first k, divided by that of the best order."""
    weights = np.diff(discounts(k))
    ideal = np.sort(gains)[::-1][:k] @ weights
    return float(gains[:k] @ weights / ideal) if ideal > 0 else 0.0
