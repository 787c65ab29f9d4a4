"""Mean average precision class by class, and how sure the mean over the queries is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes, unpack
from ..labels import LabelSets
from ..utils.arrays import unique_rows

_RESAMPLES, _BLOCK = 2000, 1 << 22  # of the bootstrap; draws in memory at a time


@dataclass(frozen=True)
class ClassResult:
    """The queries of one class."""

    name: str
    queries: int
    map: float


@dataclass(frozen=True)
class ClassPair:
    """Two classes, and in how many bits their codes differ."""

    first: str
    second: str
    distance: int


def nearest_classes(codes: Codes, labels: LabelSets, bits: int) -> list[ClassPair]:
    """Return the pairs of classes whose codes are nearest, each class with its nearest, the nearest pair first.

    The code of a class is the most frequent one of its items. Items of several labels are left out.

    Args:
        codes: packed, of the database.
        labels: of the database.
        bits: the code length.
    """
    sizes = np.diff(labels.starts)
    names, rows = [], []
    distinct, numbers, _ = unique_rows(codes)
    order = np.argsort(labels.ids, kind="stable")
    starts = np.searchsorted(labels.ids[order], np.arange(labels.set_count + 1))
    for number in np.flatnonzero(sizes == 1):
        members = order[starts[number] : starts[number + 1]]
        if len(members):
            names.append(str(labels.names_of(int(number))[0]))
            rows.append(np.bincount(numbers[members]).argmax())
    if len(names) < 2:
        return []
    V = unpack(distinct[np.array(rows)], bits).astype(np.float32)
    pairs: dict[tuple[int, int], int] = {}
    for i, code in enumerate(V):
        apart = (bits - V @ code) / 2
        apart[i] = np.inf
        j = int(apart.argmin())
        pairs[min(i, j), max(i, j)] = int(apart[j])
    found = [ClassPair(names[i], names[j], distance) for (i, j), distance in pairs.items()]
    return sorted(found, key=lambda pair: (pair.distance, pair.first, pair.second))


def by_class(precisions: NDArray[np.float64], labels: LabelSets) -> list[ClassResult]:
    """Return the mean average precision of each label's queries, the lowest first.

    A query of several labels counts for each of them.

    Args:
        precisions: (queries,) the average precision of each query.
        labels: of the queries.
    """
    sizes = np.diff(labels.starts)
    sums, counts = np.zeros(len(labels.names)), np.zeros(len(labels.names), dtype=np.int64)
    by_set = np.bincount(labels.ids, weights=precisions, minlength=labels.set_count)
    queries = np.bincount(labels.ids, minlength=labels.set_count)
    np.add.at(sums, labels.tags, np.repeat(by_set, sizes))
    np.add.at(counts, labels.tags, np.repeat(queries, sizes))
    results = [
        ClassResult(str(name), int(count), float(total / count))
        for name, count, total in zip(labels.names, counts, sums, strict=True)
        if count
    ]
    return sorted(results, key=lambda result: (result.map, result.name))


def bootstrap_interval(precisions: NDArray[np.float64], seed: int = 0) -> list[float]:
    """Return the 95 % interval of the mean over the queries, from the means of samples with replacement."""
    rng, count = np.random.default_rng(seed), len(precisions)
    step = max(1, _BLOCK // count)
    means = [
        precisions[rng.integers(count, size=(min(step, _RESAMPLES - start), count))].mean(axis=1)
        for start in range(0, _RESAMPLES, step)
    ]
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return [float(low), float(high)]
