"""Which database items are relevant to a query, and how much: from labels, or from a given matrix.

Either way it is a table with a row for each kind of query and a column for each kind of item. For
labels a kind is a label set (K of them, not n points); for a given matrix every query and item is its own.
An entry is a grade: 0 is not relevant, and with labels the grade is the number of tags shared.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..labels import Ids, LabelSets, smallest_unsigned

Grades = NDArray[np.unsignedinteger[Any]]

HIGHEST_GRADE = 255  # of a given matrix
_BLOCK = 1 << 22  # entries of a given matrix read at a time


class Relevance(Protocol):
    """A table of grades by kind of query and kind of item, read a few rows at a time."""

    query_kinds: Ids  # (queries,)
    item_kinds: Ids  # (database,)
    columns: int  # kinds of item
    highest: int  # no grade is above it

    def grades(self, rows: NDArray[np.integer[Any]]) -> Grades:
        """Return (len(rows), columns), the grades of these kinds of query."""


class SharedLabels:
    """The grade is how many tags two label sets share."""

    def __init__(self, queries: LabelSets, database: LabelSets) -> None:
        self.query_kinds, self.item_kinds, self.columns = queries.ids, database.ids, database.set_count
        self._starts, self._tags = queries.starts, queries.tags_in(database.names)
        starts, holders = database.holders()
        self._holders = np.split(holders, starts[1:-1]) if len(database.names) else []  # of each tag
        most = [int(np.diff(side.starts).max(initial=0)) for side in (queries, database)]
        self.highest = max(1, min(most))

    def grades(self, rows: NDArray[np.integer[Any]]) -> Grades:
        """Return (len(rows), columns), the tags shared with each database set."""
        block: Grades = np.zeros((len(rows), self.columns), dtype=smallest_unsigned(self.highest + 1))
        for grades, row in zip(block, rows, strict=True):
            for tag in self._tags[self._starts[row] : self._starts[row + 1]]:
                if tag >= 0:  # -1: a tag that no database item has
                    grades[self._holders[tag]] += 1
        return block


class GivenGrades:
    """The grades of a (queries, database) matrix: dense or scipy-sparse, bool or whole numbers.

    Args:
        matrix: the grades, from 0 (not relevant).
        queries: the number of rows that it must have.
        database: the number of columns that it must have.
    """

    def __init__(self, matrix: Any, queries: int, database: int) -> None:
        if hasattr(matrix, "tocsr"):
            self._matrix = matrix.tocsr()
            if not self._matrix.has_canonical_format:
                self._matrix = self._matrix.copy()  # the user's matrix is not changed
                self._matrix.sum_duplicates()
        else:
            self._matrix = matrix.detach().cpu().numpy() if hasattr(matrix, "detach") else np.asanyarray(matrix)
        if self._matrix.shape != (queries, database):
            raise InputError(
                f"relevance has shape {self._matrix.shape}, but there are {queries} query codes and {database} "
                f"database codes: give a ({queries}, {database}) matrix"
            )
        self.query_kinds: Ids = np.arange(queries)
        self.item_kinds: Ids = np.arange(database)
        self.columns = database
        self.highest = max(1, self._check())

    def grades(self, rows: NDArray[np.integer[Any]]) -> Grades:
        """Return (len(rows), columns), these rows of the matrix."""
        block = self._matrix[rows]
        return np.asarray(block.toarray() if hasattr(block, "toarray") else block).astype(np.uint8)

    def _check(self) -> int:
        """Return the highest grade; raise where an entry is no grade."""
        highest = 0
        step = max(1, _BLOCK // self.columns)
        for start in range(0, len(self.query_kinds), step):
            block = self._matrix[start : start + step]
            values = block.data if hasattr(block, "tocsr") else np.asarray(block)
            if values.dtype.kind not in "biuf":
                raise InputError(f"relevance is of type {values.dtype}: give bool, or whole numbers from 0")
            if values.dtype.kind == "b":
                continue
            wrong = ~((values >= 0) & (values <= HIGHEST_GRADE))
            if values.dtype.kind == "f":
                wrong |= values % 1 != 0
            if wrong.any():
                raise InputError(
                    f"relevance holds {values[wrong].flat[0]}: grades are whole numbers from 0 (not relevant) to "
                    f"{HIGHEST_GRADE}; for a +1/-1 similarity matrix S pass S > 0"
                )
            highest = max(highest, int(values.max(initial=0)))
        return highest
