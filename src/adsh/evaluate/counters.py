"""Two ways to count items by grade and distance with NumPy; `counting` chooses the cheaper.

ByCode compares a query with the distinct database codes only, each weighted by its items. Learned codes are
few (about one a class), so this is nearly free.

ByItem compares a query with every item: XOR, popcount, and a histogram of grade * (c + 1) + distance.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import as_words
from ..hamming.distances import CodeColumns
from ..learn.labels import smallest_unsigned
from .pairing import Pairing

Tally = NDArray[np.int64]  # (q, grades, c + 1) items

_PAIRS = 1 << 17  # pairs of a query and a code counted at a time: their weights stay in the cache
_ITEMS = 1 << 18  # items whose keys are held at a time
_QUERIES = 64
_GRADES = 1 << 24  # grades held at a time
_SHIFT = 26  # two counts below 2**26 are summed as one float64, exactly: relevant << 26 | others


class Counter(Protocol):
    """Something that counts a block of the distinct queries against the database."""

    step: int  # queries to give it at a time

    def count(self, block: slice, out: Tally) -> None:
        """Fills `out`, all 0, for these queries."""


class ByCode:
    """Counts over the `codes` distinct codes, of which `numbers` (n,) says which each item has."""

    def __init__(self, pairing: Pairing, grades: int, codes: int, numbers: NDArray[np.int64]) -> None:
        first = np.empty(codes, dtype=np.int64)
        first[numbers] = np.arange(len(numbers))
        self._columns = CodeColumns(pairing.database_codes[first])
        kinds = pairing.relevance.columns
        groups, sizes = np.unique(numbers * kinds + pairing.relevance.item_kinds, return_counts=True)
        self._code, self._kind = np.divmod(groups, kinds)  # of each group: the items of one code and one kind
        self._sizes = sizes.astype(np.float64)
        self.groups = len(groups)
        self._pairing, self._grades, self.step = pairing, grades, max(1, _PAIRS // codes)
        self._two_in_one = grades == 2 and len(numbers) < 1 << _SHIFT

    def count(self, block: slice, out: Tally) -> None:
        """Fills `out` for these queries."""
        rows, row_of = np.unique(self._pairing.query_kinds[block], return_inverse=True)
        weights = np.stack([self._items_by_grade(kind) for kind in rows])  # (rows, grades, codes)
        distances = self._columns.table(self._pairing.query_codes[block])  # (queries, codes)
        q, _, cells = out.shape
        index = (cells * np.arange(q)[:, None] + distances).ravel()
        for grade in range(weights.shape[1]):
            counts = np.bincount(index, weights=weights[row_of, grade].ravel(), minlength=q * cells)
            out[:, grade] = counts.reshape(q, cells)
        if self._two_in_one:
            out[:, 1], out[:, 0] = np.divmod(out[:, 0], 1 << _SHIFT)

    def _items_by_grade(self, kind: Any) -> NDArray[np.float64]:
        """(grades, codes) items of each code by their grade for one kind of query."""
        grades = np.minimum(self._pairing.relevance.grades(np.array([kind]))[0], self._grades - 1)
        cells = grades[self._kind].astype(np.int64) * len(self._columns) + self._code
        items = np.zeros((self._grades, len(self._columns)))
        items.ravel()[:] = np.bincount(cells, weights=self._sizes, minlength=items.size)
        return items[:1] + float(1 << _SHIFT) * items[1:] if self._two_in_one else items


class ByItem:
    """Counts over all items. Two neighbouring keys of one byte are counted as one of two bytes."""

    def __init__(self, pairing: Pairing, grades: int) -> None:
        self._columns = CodeColumns(pairing.database_codes)
        self._pairing, self._grades, self.step = pairing, grades, queries_at_a_time(pairing)
        self._key_type = smallest_unsigned(grades * (pairing.bits + 1))

    def count(self, block: slice, out: Tally) -> None:
        """Fills `out` for these queries."""
        relevance, cells = self._pairing.relevance, out.shape[2]
        words = as_words(self._pairing.query_codes[block])
        rows, row_of = np.unique(self._pairing.query_kinds[block], return_inverse=True)
        offsets = np.minimum(relevance.grades(rows), self._grades - 1).astype(self._key_type) * cells
        n = len(self._columns)
        distances = np.empty(min(n, _ITEMS), dtype=self._columns.distance_type)
        keys = np.empty(min(n, _ITEMS), dtype=self._key_type)
        scratch = self._columns.scratch()
        for start in range(0, n, _ITEMS):
            item_kinds = relevance.item_kinds[start : start + _ITEMS]
            distances, keys = distances[: len(item_kinds)], keys[: len(item_kinds)]
            last = None
            for code, row, counts in zip(words, row_of, out, strict=True):
                if row != last:  # those of one kind are side by side
                    last, offset = row, offsets[row][item_kinds]
                self._columns.distances(code, start, distances, scratch)
                np.add(distances, offset, out=keys)
                counts += _histogram(keys, counts.size).reshape(counts.shape)


def queries_at_a_time(pairing: Pairing) -> int:
    """As many queries as may hold a row of grades each."""
    return max(1, min(_QUERIES, _GRADES // pairing.relevance.columns))


def _histogram(keys: NDArray[np.unsignedinteger[Any]], cells: int) -> NDArray[np.int64]:
    """(cells,) how often each key occurs."""
    if keys.itemsize > 1:
        return np.bincount(keys, minlength=cells)
    even = len(keys) & ~1
    pairs = np.bincount(keys[:even].view(np.uint16), minlength=cells * 256).reshape(cells, 256)[:, :cells]
    counts: NDArray[np.int64] = pairs.sum(axis=0) + pairs.sum(axis=1)
    counts[keys[even:]] += 1
    return counts
