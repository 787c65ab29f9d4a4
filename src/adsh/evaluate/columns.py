"""A column of an evaluation: all metrics of the queries against one coding of the database.

learned   the codes as learned (V): a labelled database, which is ADSH's setting
network   codes by the network, of the items that it was trained on
hashed    codes by the hash function of a method that has no network
new       codes as of a query, of items that no training saw: the queries, each searched among the others
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes, unpack
from ..labels import LabelSets
from ..utils.arrays import unique_rows
from .classes import ClassResult, bootstrap_interval, by_class
from .confusions import Confusion
from .examples import NEAREST
from .ranking import Ranking
from .ties import Divisor

LEARNED, NETWORK, HASHED, NEW = "learned", "network", "hashed", "new"
COLUMNS = {
    LEARNED: "codes as learned",
    NETWORK: "trained items, by the network",
    HASHED: "database, by the hash function",
    NEW: "new items",
}

_CURVE = (1, 5, 10, 20, 50, *range(100, 2001, 100))  # k of the precision and recall curves
_BLOCK = 1 << 18  # codes unpacked at a time


@dataclass(frozen=True)
class Column:
    """All metrics of the queries against one coding of the database."""

    map_expected: float  # in expectation over the orders of tied items
    map_stable: float  # ties in database order, for comparison with the literature
    map_lowest: float  # over all orders of the ties
    map_highest: float
    ndcg: float
    distinct_codes: int
    ks: list[int]
    precision: list[float]  # at each of ks
    recall: list[float]
    radius_precision: list[float]  # by Hamming radius 0 .. c; an empty look-up counts 0
    radius_recall: list[float]
    radius_returned: list[float]
    similar_pairs: list[int]  # by Hamming distance 0 .. c
    dissimilar_pairs: list[int]
    balance: list[float]  # share of +1, bit by bit
    correlation: list[list[float]]  # between the bits, over the database
    map_interval: list[float] | None = None  # of map_expected: 95 %, by bootstrap over the queries; None in older files
    map_classes: float | None = None  # the mean over classes of the mean over the queries of each
    chance: float | None = None  # map_expected of a random order
    by_class: list[ClassResult] | None = None  # the class found worst first
    confusions: list[Confusion] | None = None  # the largest share first; None for several labels an item
    nearest_interval: list[float] | None = None  # of the precision of the first ten: 95 %, as of `map_interval`

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Column:
        """Return the column that `asdict` gave; files of earlier versions lack the last values."""
        lists: dict[str, Any] = {}
        for name, kind in (("by_class", ClassResult), ("confusions", Confusion)):
            rows = saved.get(name)
            lists[name] = None if rows is None else [kind(**row) for row in rows]
        return cls(**{**saved, **lists})


def measure_column(
    ranking: Ranking, database_codes: Codes, query_labels: Any, k: int | None, divisor: Divisor
) -> Column:
    """Return all metrics of a ranking.

    Args:
        ranking: the queries against one coding.
        database_codes: that coding.
        query_labels: of the queries; None where relevance is given.
        k: as of `evaluate_codes`.
        divisor: as of `evaluate_codes`.
    """
    precisions = ranking.average_precisions(k=k, divisor=divisor)
    classes = None if query_labels is None else by_class(precisions, LabelSets.of(query_labels))
    ks = [place for place in _CURVE if place <= ranking.database]
    lowest, highest = ranking.average_precision_bounds(k=k, divisor=divisor)
    curve = ranking.precision_recall_by_radius()
    similar, dissimilar = ranking.pairs_by_distance
    balance, correlation, rows = bit_statistics(database_codes, ranking.bits)
    return Column(
        map_expected=float(precisions.mean()),
        map_stable=ranking.mean_average_precision(k=k, divisor=divisor, ties="stable"),
        map_lowest=lowest,
        map_highest=highest,
        ndcg=ranking.ndcg_at(k or ranking.database),
        distinct_codes=rows,
        ks=ks,
        precision=ranking.precision_at(ks).tolist(),
        recall=ranking.recall_at(ks).tolist(),
        radius_precision=curve.precision.tolist(),
        radius_recall=curve.recall.tolist(),
        radius_returned=curve.returned.tolist(),
        similar_pairs=similar.tolist(),
        dissimilar_pairs=dissimilar.tolist(),
        balance=balance.round(6).tolist(),
        correlation=correlation.round(4).tolist(),
        map_interval=bootstrap_interval(precisions),
        map_classes=None if classes is None else float(np.mean([result.map for result in classes])),
        chance=float(ranking.chance(k=k, divisor=divisor)),
        by_class=classes,
        nearest_interval=bootstrap_interval(ranking.precisions_at(NEAREST)),
    )


def bit_statistics(codes: Codes, bits: int) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return (c,) the share of +1 of each bit, (c, c) their correlation, and the number of distinct codes.

    The correlation with a bit that never varies is 0.
    """
    rows, _, counts = unique_rows(codes)
    n = counts.sum()
    sums, products = np.zeros(bits), np.zeros((bits, bits))
    for start in range(0, len(rows), _BLOCK):
        block, weight = unpack(rows[start : start + _BLOCK], bits).astype(np.float64), counts[start : start + _BLOCK]
        sums += weight @ block
        products += (block * weight[:, None]).T @ block
    mean = sums / n
    deviation = np.sqrt(np.maximum(1 - mean**2, 0.0))
    scale = np.where(deviation > 1e-12, 1 / np.maximum(deviation, 1e-12), 0.0)
    correlation = (products / n - np.outer(mean, mean)) * np.outer(scale, scale)
    return (1 + mean) / 2, correlation, len(rows)
