"""Which points are similar, as the two products that Algorithm 1 needs, without ever storing S.

S_ij is 1 where query i and database point j are similar and -r where not, r = similar / dissimilar pairs
of the sampled rows. With A the 0/1 matrix of similar pairs, S = (1 + r) A - r, so all products with S
come from products with rows of A:

    sum_columns(rows, X) = A[rows] @ X       for each row, the sum of X over what is similar to it
    sum_rows(rows, X)    = A[rows].T @ X     for each column, the sum of X over the rows similar to it

For labels, the rows and columns of A are label sets (K of them, not n points): `SharedTags`.
For a given S they are the points themselves, read in blocks of rows: `GivenPairs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..labels import LabelSets

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_BLOCK = 1 << 22  # entries of A in memory at a time (32 MiB of float64)
FEW = 32  # groups whose sums are a product with a matrix of 0 and 1


class Similarity(Protocol):
    """Products with rows of A."""

    rows: int
    columns: int

    def sum_columns(self, rows: Indices, X: Floats) -> Floats:
        """A[rows] @ X, (len(rows), c)."""

    def sum_rows(self, rows: Indices, X: Floats) -> Floats:
        """A[rows].T @ X, (columns, c); X has a row for each of `rows`."""


class SharedTags:
    """A between the label sets of queries and of the database: 1 where two sets share a tag."""

    def __init__(self, queries: LabelSets, database: LabelSets) -> None:
        self.rows, self.columns = queries.set_count, database.set_count
        names = database.names
        self._starts, self._tags = queries.starts, queries.tags_in(names)
        self._database = database
        single = max(np.diff(queries.starts).max(initial=0), np.diff(database.starts).max(initial=0)) <= 1
        self._tag_count = len(names)
        self._cached: Floats | None = None
        if single:  # one tag a set: A is a grouping by tag, and no block of it is needed
            self._row_tag: Indices | None = _only_tag(queries.starts, self._tags)
            self._column_tag = _only_tag(database.starts, database.tags)
        else:
            self._row_tag = None
            self._holder_starts, self._holders = database.holders()

    def sum_columns(self, rows: Indices, X: Floats) -> Floats:
        """A[rows] @ X."""
        if self._row_tag is not None:
            return self._by_tag(self._column_tag, X)[self._row_tag[rows]]
        return np.concatenate([block @ X for _, block in self._blocks(rows)])

    def sum_rows(self, rows: Indices, X: Floats) -> Floats:
        """A[rows].T @ X."""
        if self._row_tag is not None:
            return self._by_tag(self._row_tag[rows], X)[self._column_tag]
        total = np.zeros((self.columns, X.shape[1]))
        for part, block in self._blocks(rows):
            total += block.T @ X[part]
        return total

    def all_similar(self, rows: Indices, columns: Indices) -> bool:
        """Return whether no pair of these label sets is dissimilar, so that there is nothing to learn.

        Exact for one tag a set, and where A is small enough to store; otherwise it looks for a tag that all share.
        """
        if self._row_tag is None and self.rows * self.columns <= _BLOCK:
            chosen = np.zeros((self.columns, 1))
            chosen[columns] = 1.0
            return bool((self.sum_columns(rows, chosen) == len(columns)).all())
        in_all_rows = self._in_all(rows, self._starts, self._tags)
        return bool((in_all_rows & self._in_all(columns, self._database.starts, self._database.tags)).any())

    def none_similar(self, rows: Indices, columns: Indices) -> bool:
        """Return whether these rows and these columns share no tag."""
        _, row_tags = ragged(rows, self._starts, self._tags)
        _, column_tags = ragged(columns, self._database.starts, self._database.tags)
        return not np.isin(row_tags, column_tags).any()

    def _in_all(self, sets: Indices, starts: NDArray[np.int64], tags: Indices) -> NDArray[np.bool_]:
        """Return (tags,) whether each tag is in all of these sets."""
        _, tags = ragged(sets, starts, tags)
        in_all: NDArray[np.bool_] = np.bincount(tags[tags >= 0], minlength=self._tag_count) == len(sets)
        return in_all

    def _by_tag(self, tags: Indices, X: Floats) -> Floats:
        """Return (tags + 1, c) sums of X by tag; the last row, that of a missing tag (-1), is 0."""
        sums = sum_by(np.where(tags < 0, self._tag_count, tags), X, self._tag_count + 1)
        sums[-1] = 0.0
        return sums

    def _blocks(self, rows: Indices) -> Iterator[tuple[slice, Floats]]:
        """Yield A[rows], a bounded block at a time; a small A is cached."""
        if self.rows * self.columns <= _BLOCK:
            if self._cached is None:
                self._cached = self._block(np.arange(self.rows))
            yield slice(None), self._cached if len(rows) == self.rows else self._cached[rows]
            return
        step = max(1, _BLOCK // max(self.columns, 1))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            yield part, self._block(rows[part])

    def _block(self, rows: Indices) -> Floats:
        row, tag = ragged(rows, self._starts, self._tags)
        row, tag = row[tag >= 0], tag[tag >= 0]
        pair, holder = ragged(tag, self._holder_starts, self._holders)
        block = np.zeros((len(rows), self.columns))
        block[row[pair], holder] = 1.0
        return block


class GivenPairs:
    """A from a given S: dense +1/-1, or scipy-sparse where a stored 1 is similar and the rest is not."""

    def __init__(self, S: Any) -> None:
        self._sparse = hasattr(S, "tocsr")
        if not self._sparse:
            S = S.detach().cpu().numpy() if hasattr(S, "detach") else np.asanyarray(S)
        if len(S.shape) != 2:
            raise InputError(f"the similarity matrix has shape {S.shape}: give (queries, database points)")
        self.rows, self.columns = S.shape
        self._step = max(1, _BLOCK // max(self.columns, 1))
        self._matrix = S.tocsr() if self._sparse else S
        self.similar_pairs = self._check_entries()

    def sum_columns(self, rows: Indices, X: Floats) -> Floats:
        """A[rows] @ X."""
        return np.concatenate([block @ X for _, block in self._blocks(rows)])

    def sum_rows(self, rows: Indices, X: Floats) -> Floats:
        """A[rows].T @ X."""
        total = np.zeros((self.columns, X.shape[1]))
        for part, block in self._blocks(rows):
            total += block.T @ X[part]
        return total

    def _blocks(self, rows: Indices) -> Iterator[tuple[slice, Any]]:
        for start in range(0, len(rows), self._step):
            part = slice(start, start + self._step)
            block = self._matrix[rows[part]]
            yield part, block.astype(np.float64) if self._sparse else (block > 0).astype(np.float64)

    def _check_entries(self) -> int:
        """Return the number of similar pairs; raise for an entry that is neither similar nor dissimilar."""
        if self._sparse:
            if not self._matrix.has_canonical_format:
                self._matrix = self._matrix.copy()  # leave the user's matrix unchanged
                self._matrix.sum_duplicates()
            odd = self._matrix.data[self._matrix.data != 1]
            if len(odd):
                raise InputError(
                    f"the sparse similarity matrix stores {odd[0]}: store 1 for a similar pair, nothing for others"
                )
            return int(self._matrix.nnz)
        similar = 0
        for start in range(0, self.rows, self._step):
            block = np.asarray(self._matrix[start : start + self._step])
            wrong = (block != 1) & (block != -1)
            if wrong.any():
                raise InputError(
                    f"the similarity matrix holds {block[wrong][0]}: entries are +1 (similar) and -1 (dissimilar); "
                    "for a 0/1 matrix pass 2 * S - 1"
                )
            similar += int(np.count_nonzero(block == 1))
        return similar


def weighted(similar: Floats, X: Floats, ratio: float) -> Floats:
    """Return the product with S, given that with A: S = (1 + r) A - r."""
    product: Floats = (1 + ratio) * similar - ratio * X.sum(axis=0)
    return product


def sum_by(groups: NDArray[np.integer[Any]], X: Floats, count: int) -> Floats:
    """Return (count, c) sums of the rows of X by group."""
    if count <= FEW:
        few: Floats = (groups == np.arange(count)[:, None]).astype(np.float64) @ X
        return few
    width = X.shape[1]
    cells = (groups.astype(np.int64)[:, None] * width + np.arange(width)).ravel()
    sums: Floats = np.bincount(cells, weights=X.ravel(), minlength=count * width).astype(np.float64)
    return sums.reshape(count, width)


def _only_tag(starts: NDArray[np.int64], tags: Indices) -> Indices:
    """Return (K,) the one tag of each set, -1 where it has none."""
    only = np.full(len(starts) - 1, -1, dtype=np.int64)
    only[np.diff(starts) > 0] = tags
    return only


def ragged(keys: Indices, starts: NDArray[np.int64], values: Indices) -> tuple[Indices, Indices]:
    """Return the values of each key's list, one after the other, and which key each belongs to."""
    lengths = starts[keys + 1] - starts[keys]
    owner = np.repeat(np.arange(len(keys)), lengths)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, values[starts[keys][owner] + offset]
