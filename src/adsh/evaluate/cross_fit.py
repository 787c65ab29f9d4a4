"""Accuracy pooled over folds: every item is a query once, of a model that was fitted without its fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes
from ..labels import LabelSets
from .classes import bootstrap_interval, by_class
from .columns import NEW
from .ranking import Ranking
from .ties import Divisor

FOLDS = 5  # unless classes are too small for as many
FEW_QUERIES, FEW_A_CLASS = 200, 10  # a held-out part of fewer is small

_PER_FOLD = 2  # items of the median class in each fold: a new item needs another one to find


@dataclass(frozen=True)
class PooledColumn:
    """Mean average precision over the queries of all folds."""

    map_expected: float
    map_interval: list[float]  # 95 %, by bootstrap over the queries
    map_classes: float  # the mean over classes
    chance: float  # of a random order


@dataclass(frozen=True)
class CrossFit:
    """What further fits gave, each without one fold, which its queries are."""

    folds: int
    queries: int
    database: int  # items of a fit, on average
    columns: dict[str, PooledColumn]
    seconds: float

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> CrossFit:
        """Return what `asdict` gave."""
        return cls(**{**saved, "columns": {name: PooledColumn(**column) for name, column in saved["columns"].items()}})


@dataclass(frozen=True)
class Fold:
    """The average precision of each query of a fold, and of a random order, by column."""

    queries: NDArray[np.int64]  # indices of the items
    precisions: dict[str, NDArray[np.float64]]
    chance: dict[str, float]


def is_small(queries: LabelSets, database: LabelSets) -> bool:
    """Return whether a held-out part is too small to mean something: fewer than 200 queries, or 10 a class.

    The standard deviation of average precision is about .3: of 200 queries the mean has an error of .02, and of ten
    queries of a class one of .1.
    """
    classes = len(np.unique(database.tags))
    return len(queries) < max(FEW_QUERIES, FEW_A_CLASS * classes)


def choose_folds(labels: LabelSets) -> int:
    """Return how many folds leave each of them two items of the median class: 2 to 5."""
    sizes = np.bincount(labels.tags, np.repeat(labels.sizes, np.diff(labels.starts)))
    return int(np.clip(np.median(sizes[sizes > 0]) // _PER_FOLD, 2, FOLDS))


def assign_folds(features: NDArray[np.float32], labels: LabelSets, folds: int, seed: int) -> NDArray[np.int64]:
    """Return (n,) the fold of each item: label sets in equal shares, and copies of an item in one fold.

    Args:
        features: (n, d) of the items; copies have equal ones.
        labels: of the items.
        folds: how many.
        seed: of the draw.
    """
    numbers: dict[bytes, int] = {}
    copies = [numbers.setdefault(row.tobytes(), len(numbers)) for row in features]
    _, first, group = np.unique(copies, return_index=True, return_inverse=True)
    order = np.lexsort((np.random.default_rng(seed).random(len(first)), labels.ids[first]))
    fold = np.empty(len(first), dtype=np.int64)
    fold[order] = np.arange(len(first)) % folds
    return fold[group]


def evaluate_fold(
    queries: NDArray[np.int64],
    query_codes: Codes,
    codings: Mapping[str, Codes],
    query_labels: LabelSets,
    database_labels: LabelSets,
    *,
    bits: int,
    k: int | None,
    divisor: Divisor,
) -> Fold:
    """Evaluate the items of a fold as queries, against codings of the others and among themselves.

    Args:
        queries: indices of the items of the fold.
        query_codes: packed, of these items.
        codings: packed codes of the others, by column.
        query_labels: of the fold.
        database_labels: of the others.
        bits: the code length.
        k, divisor: as of `evaluate_codes`.

    Returns:
        The average precisions.
    """
    rankings = {
        name: Ranking(query_codes, codes, query_labels, database_labels, bits=bits) for name, codes in codings.items()
    }
    if len(query_codes) > 1:
        sides = query_codes, query_codes, query_labels, query_labels
        rankings[NEW] = Ranking(*sides, bits=bits, leave_one_out=True)
    precisions = {name: ranking.average_precisions(k=k, divisor=divisor) for name, ranking in rankings.items()}
    chance = {name: ranking.chance(k=k, divisor=divisor) for name, ranking in rankings.items()}
    return Fold(queries, precisions, chance)


def pool(folds: Sequence[Fold], labels: LabelSets, seconds: float) -> CrossFit:
    """Return the means over the queries of all folds.

    Args:
        folds: each with its queries.
        labels: of all items.
        seconds: how long the fits took.
    """
    queries = np.concatenate([fold.queries for fold in folds])
    columns = {}
    for name in folds[0].precisions:
        precisions = np.concatenate([fold.precisions[name] for fold in folds])
        classes = by_class(precisions, labels.take(queries))
        columns[name] = PooledColumn(
            float(precisions.mean()),
            bootstrap_interval(precisions),
            float(np.mean([result.map for result in classes])),
            float(np.average([fold.chance[name] for fold in folds], weights=[len(fold.queries) for fold in folds])),
        )
    database = round(len(queries) * (1 - 1 / len(folds)))
    return CrossFit(len(folds), len(queries), database, columns, round(seconds, 2))
