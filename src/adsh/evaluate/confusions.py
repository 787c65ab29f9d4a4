"""Which classes are taken for which: the classes of the nearest items of a class's queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes, unpack
from ..labels import LabelSets
from ..utils.arrays import unique_rows

_BLOCK = 1 << 24  # distances in memory at a time


@dataclass(frozen=True)
class Confusion:
    """A class, and the wrong class that is most frequent among the nearest items of its queries."""

    name: str
    queries: int
    taken_for: str
    share: float  # of the nearest items that are of that class
    correct: float  # of the nearest items that are of the right class


@dataclass(frozen=True)
class _Groups:
    """The distinct codes of a database, and how many items of each class have each of them."""

    codes: NDArray[np.float32]  # (rows, c) +1/-1
    of_item: NDArray[np.intp]  # (n,) the row of each item
    starts: NDArray[np.int64]  # (rows + 1,) classes[starts[r]:starts[r + 1]] occur with code r
    classes: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, codes: Codes, classes: NDArray[np.int64], bits: int) -> _Groups:
        rows, of_item, _ = unique_rows(codes)
        most = int(classes.max()) + 1
        keys, counts = np.unique(of_item * most + classes, return_counts=True)
        starts = np.searchsorted(keys // most, np.arange(len(rows) + 1))
        return cls(unpack(rows, bits).astype(np.float32), of_item, starts, keys % most, counts)


def confusions(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: LabelSets,
    database_labels: LabelSets,
    *,
    bits: int,
    leave_one_out: bool = False,
) -> list[Confusion] | None:
    """Return for each class the class that its queries are most often taken for, the largest share first.

    Of each query the items at the smallest distance are looked at; where several are equally near, each counts a part.
    Classes whose nearest items are all of their own class are left out, and so are items without a label.

    Args:
        query_codes: packed, one a query.
        database_codes: packed, one an item.
        query_labels: of the queries.
        database_labels: of the database.
        bits: the code length.
        leave_one_out: the queries are the database, and each is left out of its own nearest items.

    Returns:
        A confusion for each class that is taken for another; None where an item has several labels.
    """
    if (np.diff(query_labels.starts) > 1).any() or (np.diff(database_labels.starts) > 1).any():
        return None
    query_classes, stored = _classes(query_labels), _classes(database_labels)
    known, kept = np.flatnonzero(query_classes >= 0), np.flatnonzero(stored >= 0)
    if not len(known) or not len(kept):
        return None
    groups = _Groups.of(database_codes[kept], stored[kept], bits)
    own = np.searchsorted(kept, known) if leave_one_out else None
    queries, taken, shares = _nearest(unpack(query_codes[known], bits), query_classes[known], groups, own)
    return _summary(query_classes[known][queries], taken, shares, query_labels, database_labels)


def _classes(labels: LabelSets) -> NDArray[np.int64]:
    """Return (n,) the class of each item as the number of its label, -1 for none."""
    of_set = np.full(labels.set_count, -1, dtype=np.int64)
    of_set[np.diff(labels.starts) == 1] = labels.tags
    return of_set[labels.ids]


def _nearest(
    signs: NDArray[np.int8], classes: NDArray[np.int64], groups: _Groups, own: NDArray[np.intp] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return entries of a query, a class, and the share of the query's nearest items that is of this class.

    Args:
        signs: (queries, c) +1/-1.
        classes: (queries,) of the queries.
        groups: the database.
        own: (queries,) where each query is in the database, to be left out; None where they are not in it.
    """
    row_counts = np.add.reduceat(groups.counts, groups.starts[:-1])
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    step = max(1, _BLOCK // len(groups.codes))
    for start in range(0, len(signs), step):
        block = np.arange(start, min(start + step, len(signs)))
        products = signs[block].astype(np.float32) @ groups.codes.T  # the larger, the nearer
        if own is not None:
            own_rows = groups.of_item[own[block]]
            alone = row_counts[own_rows] == 1
            products[np.flatnonzero(alone), own_rows[alone]] = -np.inf
        places, rows = np.nonzero(products == products.max(axis=1, keepdims=True))
        sizes = groups.starts[rows + 1] - groups.starts[rows]
        entries = np.repeat(groups.starts[rows] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        queries, items = np.repeat(block[places], sizes), groups.counts[entries].astype(np.float64)
        if own is not None:  # the query itself is one of the items of its row and class
            is_own = np.repeat(rows, sizes) == groups.of_item[own[queries]]
            items -= is_own & (groups.classes[entries] == classes[queries])
        total = np.bincount(queries, weights=items, minlength=len(signs))
        found.append((queries, groups.classes[entries], items / np.maximum(total[queries], 1)))
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))  # type: ignore[return-value]  # three of them


def _summary(
    query_classes: NDArray[np.int64],
    taken: NDArray[np.int64],
    shares: NDArray[np.float64],
    query_labels: LabelSets,
    database_labels: LabelSets,
) -> list[Confusion]:
    """Return the confusions, from entries of a query's class, the class of nearest items, and their share.

    Args:
        query_classes: (entries,) the class of the query.
        taken: (entries,) the class of the items.
        shares: (entries,) of the query's nearest items.
        query_labels: name the classes of the queries.
        database_labels: name the classes of the items.
    """
    width = len(database_labels.names)
    keys, places = np.unique(query_classes * width + taken, return_inverse=True)
    sums = np.bincount(places, weights=shares)
    total = np.bincount(query_classes, weights=shares, minlength=len(query_labels.names))  # one for each query
    results = []
    for number in np.unique(query_classes).tolist():
        name = str(query_labels.names[number])
        entries = slice(*np.searchsorted(keys, [number * width, (number + 1) * width]))
        share_of = {
            str(database_labels.names[key % width]): float(value / total[number])
            for key, value in zip(keys[entries].tolist(), sums[entries], strict=True)
        }
        correct = share_of.pop(name, 0.0)
        wrong = max(share_of, key=lambda other: share_of[other], default=None)
        if wrong is not None and share_of[wrong] > 0:
            results.append(Confusion(name, round(total[number]), wrong, share_of[wrong], correct))
    return sorted(results, key=lambda one: (-one.share, one.name))
