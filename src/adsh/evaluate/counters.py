"""Two ways to count items by grade and distance with NumPy; `counting` chooses the cheaper.

ByCode compares a query with the distinct database codes only, each weighted by its items. Learned codes are
few (about one a class), so this is nearly free.

ByItem compares a query with every item: a matrix product and a histogram.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import as_words
from ..hamming.distances import CodeColumns
from .pairing import Pairing

Tally = NDArray[np.int64]  # (q, grades, c + 1) items

_PAIRS = 1 << 17  # weights of codes in memory at a time
_SHIFT = 26  # two counts below 2**26 are summed as one float64, exactly: relevant << 26 | others
_QUERIES = 4096  # counted at a time: for each such block all items are unpacked once
_GRADES = 1 << 24  # grades in memory at a time
_ITEMS = 1 << 17  # items compared at a time
_ROWS = 64  # queries in one product
_TWO_UP_TO = 256  # keys: beyond it the histogram of two at once leaves the cache


class Counter(Protocol):
    """Counts a block of the distinct queries against the database."""

    threaded: bool  # whether several threads may count at once
    step: int  # queries to pass at a time

    def count(self, block: slice, out: Tally) -> None:
        """Fill `out`, all 0, for these queries."""


class ByCode:
    """Counts over the distinct codes of the database.

    Args:
        pairing: queries and database.
        grades: how many grades are counted; higher ones count as the last.
        codes: the number of distinct database codes.
        numbers: (n,), the number of each item's code.
    """

    threaded = False

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
        """Fill `out` for these queries."""
        rows, row_of = np.unique(self._pairing.query_kinds[block], return_inverse=True)
        weights = np.stack([self._items_by_grade(kind) for kind in rows])  # (rows, grades, codes)
        distances = np.empty(len(self._columns), dtype=self._columns.distance_type)
        scratch = self._columns.scratch()
        for code, row, counts in zip(as_words(self._pairing.query_codes[block]), row_of, out, strict=True):
            self._columns.distances(code, 0, distances, scratch)
            for grade, items in enumerate(weights[row]):
                counts[grade] = np.bincount(distances, items, minlength=counts.shape[1])
        if self._two_in_one:
            out[:, 1], out[:, 0] = np.divmod(out[:, 0], 1 << _SHIFT)

    def _items_by_grade(self, kind: Any) -> NDArray[np.float64]:
        """Return (grades, codes), the items of each code by their grade for one kind of query."""
        grades = np.minimum(self._pairing.relevance.grades(np.array([kind]))[0], self._grades - 1)
        cells = grades[self._kind].astype(np.int64) * len(self._columns) + self._code
        items = np.zeros((self._grades, len(self._columns)))
        items.ravel()[:] = np.bincount(cells, weights=self._sizes, minlength=items.size)
        return items[:1] + float(1 << _SHIFT) * items[1:] if self._two_in_one else items


class ByItem:
    """Counts over all items, by the key grade * (c + 1) + distance of each; a matrix product gives the keys.

    With bits of 0 and 1, the distance of b from q is |q| - (2q - 1).b. Two items are keyed at once: a product
    with S b1 + b2 gives S key1 + key2, with S above all keys, and the histogram of these S * S values, summed
    along one axis and along the other, is that of the keys. This halves both the product and the counting.
    """

    threaded = True

    def __init__(self, pairing: Pairing, grades: int) -> None:
        self._pairing, self._grades, self.step = pairing, grades, queries_at_a_time(pairing)
        self._keys = grades * (pairing.bits + 1)
        self._stride = self._keys + 1  # S: the last key stands for no item, where their number is odd
        self._two_at_once = self._keys <= _TWO_UP_TO

    def count(self, block: slice, out: Tally) -> None:
        """Fill `out` for these queries."""
        codes, kinds = self._pairing.query_codes[block], self._pairing.query_kinds[block]
        ones = np.unpackbits(codes, axis=1, count=self._pairing.bits).astype(np.float32)
        queries = np.column_stack([1 - 2 * ones, ones.sum(axis=1)])  # (q, c + 1)
        rows, row_of = np.unique(kinds, return_inverse=True)
        grades = np.minimum(self._pairing.relevance.grades(rows), self._grades - 1)
        for start in range(0, len(self._pairing.database_codes), _ITEMS):
            items = slice(start, start + _ITEMS)
            folded = self._items(items)  # (c + 1, pairs)
            products = np.empty((_ROWS, folded.shape[1]), dtype=np.float32)
            sums, keys = np.empty_like(products[0]), np.empty(folded.shape[1], dtype=np.int32)
            item_kinds = self._pairing.relevance.item_kinds[items]
            last = None
            for first in range(0, len(queries), _ROWS):
                block_queries = queries[first : first + _ROWS]
                block_products = np.matmul(block_queries, folded, out=products[: len(block_queries)])
                for i, product in enumerate(block_products, first):
                    if row_of[i] != last:  # queries of one kind are side by side
                        last = row_of[i]
                        offset = self._fold(grades[last][item_kinds] * np.float32(out.shape[2]), self._keys)
                    np.add(product, offset, out=sums)
                    np.copyto(keys, sums, casting="unsafe")  # whole numbers
                    out[i] += self._histogram(keys).reshape(out[i].shape)

    def _items(self, items: slice) -> NDArray[np.float32]:
        """Return (c + 1, pairs), the bits of these items, and a row of ones, a factor of |q|; all 0 for no item."""
        codes, bits = np.ascontiguousarray(self._pairing.database_codes[items].T), self._pairing.bits
        rows = np.ones((bits + 1, codes.shape[1]), dtype=bool)
        for bit in range(bits):  # numpy.unpackbits is slow along this axis
            np.not_equal(codes[bit // 8] & (128 >> bit % 8), 0, out=rows[bit])
        return self._fold(rows, 0)

    def _fold(self, values: NDArray[Any], missing: int) -> NDArray[np.float32]:
        """Return S * first half + second half along the last axis; `missing` fills up a shorter second half."""
        if not self._two_at_once:
            return values.astype(np.float32)
        half = -(-values.shape[-1] // 2)
        folded: NDArray[np.float32] = np.multiply(values[..., :half], np.float32(self._stride), dtype=np.float32)
        folded[..., : values.shape[-1] - half] += values[..., half:]
        folded[..., values.shape[-1] - half :] += missing
        return folded

    def _histogram(self, keys: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return (keys,), how often each occurs."""
        if not self._two_at_once:
            return _bincount(keys, self._keys)
        pairs = _bincount(keys, self._stride**2).reshape(self._stride, self._stride)
        counts: NDArray[np.int64] = (pairs.sum(axis=0) + np.einsum("ij->i", pairs))[: self._keys]
        return counts


def _bincount(keys: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    """Count by numpy, or by torch where it is loaded: that takes int32 directly, and two thirds of the time."""
    torch = sys.modules.get("torch")
    if torch is None:
        return np.bincount(keys, minlength=size)
    counts: NDArray[np.int64] = torch.bincount(torch.from_numpy(keys), minlength=size).numpy()
    return counts


def queries_at_a_time(pairing: Pairing) -> int:
    """Return how many queries to count at a time, so that a row of grades for each fits in memory."""
    return max(1, min(_QUERIES, _GRADES // pairing.relevance.columns))
