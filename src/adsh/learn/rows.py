"""The distinct (label set, code) rows of the code table, and which row each point is at.

A point never split off is at its label set's first row. The row of any other is stored, so memory grows with the points
ever split off, at most those sampled, never with n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.bits import as_words, pack
from ..labels import Ids, in_blocks, smallest_unsigned
from .similarity import Indices

_STATE = {
    "label_set": "label_set", "codes": "codes", "count": "count",
    "first": "_first", "sampled": "_sampled", "sampled_row": "_sampled_row",
}  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """The distinct rows: label set, code, and how many points each stands for. Ordered by label set."""

    label_set: Indices  # (R,)
    codes: NDArray[np.int8]  # (R, c)
    count: NDArray[np.int64]  # (R,)

    def __len__(self) -> int:
        return len(self.count)


class RowTable:
    """Rows that points are split off from and merged into.

    Args:
        ids: (n,) the label set of each point.
        sizes: (K,) how many points of each label set take part.
        bits: the code length.
    """

    def __init__(self, ids: Ids, sizes: NDArray[np.int64], bits: int) -> None:
        present = np.flatnonzero(sizes)
        self.ids = ids  # (n,)  the label set of each point
        self.label_set: Indices = present
        self.codes = np.zeros((len(present), bits), dtype=np.int8)
        self.count = sizes[present]
        self._takes_part = sizes > 0
        self._first = np.full(len(sizes), -1, dtype=np.int64)  # the row of each set's never-sampled points
        self._first[present] = np.arange(len(present))
        self._sampled: Indices = np.empty(0, dtype=np.int64)  # ascending: points whose row is stored
        self._sampled_row: Indices = np.empty(0, dtype=np.int64)

    def numbers(self) -> NDArray[np.unsignedinteger[Any]]:
        """Return (n,) the row of each point, in the smallest type that fits; the number of rows where it has none."""
        none = len(self.count)
        first = np.where(self._first < 0, none, self._first).astype(smallest_unsigned(none + 1))
        numbers = in_blocks(self.ids, lambda block: first[block], first.dtype)
        numbers[self._sampled] = self._sampled_row
        return numbers

    def split(self, points: Indices, source: Indices) -> Indices:
        """Give each of these points, now at the rows `source`, a row of its own at the end of the table.

        Returns:
            (m,) the new rows.
        """
        rows = len(self.count)
        new_rows = own = np.arange(rows, rows + len(points))
        self.count = np.concatenate([self.count - np.bincount(source, minlength=rows), np.ones_like(own)])
        self.label_set = np.concatenate([self.label_set, self.ids[points].astype(np.int64)])
        self.codes = np.concatenate([self.codes, self.codes[source]])

        order = np.argsort(points)
        points, own = points[order], own[order]
        at = np.searchsorted(self._sampled, points)
        new = np.append(self._sampled, -1)[at] != points
        sampled_row = self._sampled_row.copy()  # a state returned earlier stays as it was
        sampled_row[at[~new]] = own[~new]
        self._sampled = np.insert(self._sampled, at[new], points[new])
        self._sampled_row = np.insert(sampled_row, at[new], own[new])
        return new_rows

    def merge(self) -> Indices:
        """Drop empty rows, merge equal ones, and order the table by label set and code.

        Returns:
            The new number of each row, -1 for those dropped.
        """
        live = np.flatnonzero(self.count)
        words = as_words(pack(self.codes[live]))
        order = live[np.lexsort((*words.T, self.label_set[live]))]
        label_set, codes = self.label_set[order], self.codes[order]
        differs = (label_set[1:] != label_set[:-1]) | (codes[1:] != codes[:-1]).any(axis=1)
        heads = np.flatnonzero(np.concatenate([[True], differs]))
        number = np.full(len(self.count), -1, dtype=np.int64)
        number[order] = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(order))))

        self.count = np.add.reduceat(self.count[order], heads)
        self.label_set, self.codes = label_set[heads], codes[heads]
        self._sampled_row = number[self._sampled_row]
        self._first = np.where(self._first < 0, -1, number[self._first])
        return number

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that changes, as arrays."""
        return {name: getattr(self, attribute) for name, attribute in _STATE.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Put in place what `state` of a table of the same points returned."""
        for name, attribute in _STATE.items():
            setattr(self, attribute, state[name].copy())

    def start_from(self, codes: NDArray[Any]) -> None:
        """Give every point that takes part its code in `codes`."""
        shape = (len(self.ids), self.codes.shape[1])
        if codes.shape != shape or not np.isin(codes, (-1, 1)).all():
            raise InputError(f"start has shape {codes.shape}: give {shape} codes of +1 and -1")
        self._sampled = np.flatnonzero(self._takes_part[self.ids])
        self._sampled_row = np.arange(len(self._sampled))
        self.label_set = self.ids[self._sampled].astype(np.int64)
        self.codes = codes[self._sampled].astype(np.int8)
        self.count = np.ones(len(self._sampled), dtype=np.int64)
        self._first[:] = -1
        self.merge()

    def start_from_rows(self, label_set: Indices, codes: NDArray[np.int8], numbers: NDArray[np.integer[Any]]) -> None:
        """Give every point the row of its number; the label sets of rows and points agree.

        Args:
            label_set: (R,) of each row.
            codes: (R, c) of each row, +1/-1, or 0 where there is none yet.
            numbers: (n,) the row of each point; R where it takes no part.
        """
        rows = len(codes)
        self.label_set, self.codes = label_set, codes
        self.count = np.bincount(numbers, minlength=rows + 1)[:rows]
        order = np.argsort(self.count, kind="stable")  # the largest row of each label set comes last
        self._first[:] = -1
        self._first[label_set[order]] = order
        self._sampled = np.flatnonzero((numbers < rows) & (numbers != self._first[self.ids]))
        self._sampled_row = numbers[self._sampled].astype(np.int64)
        self.merge()

    def rows_of(self, points: Indices) -> Indices:
        """Return (m,) the row of each of these points."""
        rows: Indices = self._first[self.ids[points]]
        if len(self._sampled):
            at = np.minimum(np.searchsorted(self._sampled, points), len(self._sampled) - 1)
            known = self._sampled[at] == points
            rows[known] = self._sampled_row[at[known]]
        return rows
