"""Two ways to count items by grade and distance with NumPy; `counting` chooses the cheaper.

ByCode compares a query with the distinct database codes only, each weighted by its items. Learned codes are
few (about one a class), so this is nearly free.

ByItem compares a query with every item: XOR, popcount, and a histogram of the key grade * (c + 1) + distance.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes, as_words, number_rows
from ..hamming.distances import CodeColumns
from ..learn.labels import smallest_unsigned
from .relevance import Relevance

Tally = NDArray[np.int64]  # (queries, grades, c + 1) items
Kinds = NDArray[np.integer[Any]]

_ITEMS = 1 << 18  # items whose keys are held at a time
_SHIFT = 26  # two counts below 2**26 travel as one float64, exactly: count 1 << 26 | count 0


class Counter(Protocol):
    """Something that counts a block of queries against the database."""

    def count(self, codes: Codes, kinds: Kinds, out: Tally) -> None:
        """Fills `out`, all 0, for these queries."""


class ByCode:
    """Counts over the distinct codes; `groups` are the distinct pairs of a code and a kind of item."""

    def __init__(self, database: Codes, relevance: Relevance, bits: int, grades: int) -> None:
        self.codes, number = number_rows(as_words(database))
        first = np.empty(self.codes, dtype=np.int64)
        first[number] = np.arange(len(number))
        self._columns = CodeColumns(database[first])
        pairs, self._sizes = np.unique(number * relevance.columns + relevance.item_kinds, return_counts=True)
        self._code, self._kind = np.divmod(pairs, relevance.columns)
        self.groups = len(pairs)
        self._relevance, self._bits, self._grades = relevance, bits, grades
        self._two_in_one = grades == 2 and len(database) < 1 << _SHIFT

    def count(self, codes: Codes, kinds: Kinds, out: Tally) -> None:
        """Fills `out` for these queries."""
        distances = np.empty(self.codes, dtype=self._columns.distance_type)
        last = None
        for words, kind, counts in zip(as_words(codes), kinds, out, strict=True):
            if kind != last:
                last, weights = kind, self._items_by_grade(kind)
            self._columns.distances(words, 0, distances)
            if self._two_in_one:
                both = np.bincount(distances, weights=weights[0], minlength=self._bits + 1).astype(np.int64)
                counts[1], counts[0] = both >> _SHIFT, both & ((1 << _SHIFT) - 1)
            else:
                for grade, items in enumerate(weights):
                    counts[grade] = np.bincount(distances, weights=items, minlength=self._bits + 1)

    def _items_by_grade(self, kind: Any) -> NDArray[np.float64]:
        """(grades, codes) items of each code by their grade for this kind of query."""
        grades = np.minimum(self._relevance.grades(np.array([kind]))[0], self._grades - 1)
        cells = grades[self._kind].astype(np.int64) * self.codes + self._code
        counted = np.bincount(cells, weights=self._sizes, minlength=self._grades * self.codes)
        items = counted.astype(np.float64, copy=False).reshape(self._grades, self.codes)
        return items[:1] + float(1 << _SHIFT) * items[1:] if self._two_in_one else items


class ByItem:
    """Counts over all items. Two neighbouring keys of one byte are counted as one of two bytes."""

    def __init__(self, database: Codes, relevance: Relevance, bits: int, grades: int) -> None:
        self._columns = CodeColumns(database)
        self._relevance, self._bits, self._grades = relevance, bits, grades
        self._key_type = smallest_unsigned(grades * (bits + 1))

    def count(self, codes: Codes, kinds: Kinds, out: Tally) -> None:
        """Fills `out` for these queries."""
        n, cells = len(self._columns), self._grades * (self._bits + 1)
        rows, row_of = np.unique(kinds, return_inverse=True)
        offsets = np.minimum(self._relevance.grades(rows), self._grades - 1).astype(self._key_type) * (self._bits + 1)
        distances = np.empty(min(n, _ITEMS), dtype=self._columns.distance_type)
        keys = np.empty(min(n, _ITEMS), dtype=self._key_type)
        for start in range(0, n, _ITEMS):
            item_kinds = self._relevance.item_kinds[start : start + _ITEMS]
            keys, distances = keys[: len(item_kinds)], distances[: len(item_kinds)]
            last = None
            for words, row, counts in zip(as_words(codes), row_of, out, strict=True):
                if row != last:
                    last, offset = row, offsets[row][item_kinds]
                self._columns.distances(words, start, distances)
                np.add(distances, offset, out=keys)
                counts += _histogram(keys, cells).reshape(counts.shape)


def _histogram(keys: NDArray[np.unsignedinteger[Any]], cells: int) -> NDArray[np.int64]:
    """(cells,) how often each key occurs."""
    if keys.itemsize > 1:
        return np.bincount(keys, minlength=cells)
    even = len(keys) & ~1
    pairs = np.bincount(keys[:even].view(np.uint16), minlength=cells * 256).reshape(cells, 256)[:, :cells]
    counts: NDArray[np.int64] = pairs.sum(axis=0) + pairs.sum(axis=1)
    counts[keys[even:]] += 1
    return counts
