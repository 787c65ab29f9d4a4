"""Items by columns, and a checksum for each: what a database stores and what a segment is built from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes, check_codes
from ..hamming.small_vectors import NONE
from .matches import Item
from .text_column import TextColumn, concatenate
from .validation import metadata_texts

if TYPE_CHECKING:
    from .collection import ItemChange

SAMPLE_BYTES = 8 << 20  # of metadata in a sample of items: its JSON is parsed, into ten times the memory
_SUMMED_AT_ONCE = 1 << 20  # bytes of text


@dataclass(frozen=True)
class Rows:
    """n items, one column per field."""

    insertion_order: NDArray[Any]  # (n,) ascends with insertion; an item that is replaced keeps its value
    codes: Codes  # (n, bytes)
    keys: TextColumn
    metadata: TextColumn | None  # JSON, empty for an item without any; None if no item has any
    vectors: NDArray[np.int8] | None  # (n, dimensions); None if no item has any

    def __len__(self) -> int:
        return len(self.insertion_order)

    def take(self, positions: NDArray[np.int64]) -> Rows:
        """Return the items at these positions."""
        return Rows(
            self.insertion_order[positions],
            self.codes[positions],
            self.keys.take(positions),
            None if self.metadata is None else self.metadata.take(positions),
            None if self.vectors is None else self.vectors[positions],
        )

    def items(self) -> Iterator[Item]:
        """Yield the items one by one."""
        everything = slice(0, len(self))
        texts = [""] * len(self) if self.metadata is None else self.metadata.at(everything)
        for key, code, text in zip(self.keys.at(everything), self.codes, texts, strict=True):
            yield Item(key, code.tobytes(), json.loads(text) if text else None)

    def equals(self, other: Rows) -> bool:
        """Whether both hold the same items with the same contents."""
        left, right = (rows._contents() for rows in (self, other))
        return len(left) == len(right) and all(map(np.array_equal, left, right))

    def _contents(self) -> list[NDArray[Any]]:
        """The arrays that equal rows have in common; a column without any value counts as missing."""
        texts = [self.keys]
        if self.metadata is not None and self.metadata.blob.any():
            texts.append(self.metadata)
        columns = [self.insertion_order, self.codes]
        for column in texts:
            columns += [column.blob, column.lengths()]
        if self.vectors is not None and (self.vectors[:, 0] != NONE).any():
            columns.append(self.vectors)
        return columns


class RowsBuilder:
    """Concatenates rows. Each column is freed once it is joined, so that there are never two copies of everything."""

    def __init__(self, fold: int = 64) -> None:
        self._fold = fold  # pieces that are joined early: thousands of small arrays would fragment the memory
        self._folded = RowsBuilder(0) if fold else None
        self._count: list[int] = []
        self._insertion_order: list[NDArray[Any]] = []
        self._codes: list[Codes] = []
        self._keys: list[TextColumn] = []
        self._metadata: list[TextColumn | None] = []
        self._vectors: list[NDArray[np.int8] | None] = []

    def append(self, rows: Rows) -> None:
        """Append a piece."""
        self._count.append(len(rows))
        self._insertion_order.append(rows.insertion_order)
        self._codes.append(rows.codes)
        self._keys.append(rows.keys)
        self._metadata.append(rows.metadata)
        self._vectors.append(rows.vectors)
        if self._folded is not None and len(self._count) == self._fold:
            self._folded.append(self._take_all())

    def rows(self, *, in_order: bool = True) -> Rows | None:
        """Return all rows, once, in the order of insertion unless `in_order` is False; None if there are none."""
        if self._folded is not None:
            if self._count:
                self._folded.append(self._take_all())
            return self._folded.rows(in_order=in_order)
        if not self._count:
            return None
        rows = self._take_all()
        if not in_order or (rows.insertion_order[1:] > rows.insertion_order[:-1]).all():
            return rows
        return rows.take(np.argsort(rows.insertion_order, kind="stable"))

    def _take_all(self) -> Rows:
        """Join the pieces, and forget them."""
        metadata, vectors = self._joined_metadata(), self._joined_vectors()
        rows = Rows(
            _concatenated(self._insertion_order), _concatenated(self._codes), concatenate(self._keys), metadata, vectors
        )
        for column in (self._count, self._metadata, self._vectors):
            column.clear()
        return rows

    def _joined_metadata(self) -> TextColumn | None:
        if all(piece is None for piece in self._metadata):
            return None
        pieces = zip(self._metadata, self._count, strict=True)
        return concatenate([TextColumn.of([b""] * count) if piece is None else piece for piece, count in pieces])

    def _joined_vectors(self) -> NDArray[np.int8] | None:
        width = next((piece.shape[1] for piece in self._vectors if piece is not None), None)
        if width is None:
            return None
        pieces = zip(self._vectors, self._count, strict=True)
        return _concatenated([no_vectors(count, width) if piece is None else piece for piece, count in pieces])


def _concatenated(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    array = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    pieces.clear()
    return array


def with_changes(rows: Rows, changes: Sequence[ItemChange], bits: int) -> Rows:
    """Return items with other metadata and codes, at the same places and with the same vectors.

    Args:
        rows: the items.
        changes: what becomes of each.
        bits: the length of the codes.
    """
    codes = rows.codes.copy()
    for row, one in enumerate(changes):
        if one.code is not None:
            codes[row] = check_codes(np.frombuffer(one.code, dtype=np.uint8)[None], bits)[0]
    texts = metadata_texts([one.metadata for one in changes], len(changes)) or []
    metadata = TextColumn.of(texts) if any(texts) else None
    return Rows(rows.insertion_order, codes, rows.keys, metadata, rows.vectors)


def join(pieces: list[Rows]) -> Rows:
    """Return all items of at least one piece, in the order of insertion; the list is emptied."""
    builder = RowsBuilder()
    while pieces:
        builder.append(pieces.pop())
    rows = builder.rows()
    assert rows is not None
    return rows


def no_vectors(n: int, width: int) -> NDArray[np.int8]:
    """Return what stands for the vectors of n items that have none."""
    vectors = np.zeros((n, width), dtype=np.int8)
    vectors[:, 0] = NONE
    return vectors


def checksums(numbers: NDArray[np.int64], rows: Rows) -> NDArray[np.uint64]:
    """Return one checksum per row, over its number, insertion order, code, key, metadata and vector.

    The sum, modulo 2^64, of each byte times an odd weight of its own. A change of one byte is always detected, any
    other with probability 1 - 2^-64.
    """
    fixed = [
        np.ascontiguousarray(numbers, dtype="<i8").view(np.uint8).reshape(len(rows), 8),
        np.ascontiguousarray(rows.insertion_order, dtype="<i8").view(np.uint8).reshape(len(rows), 8),
        rows.codes,
    ]
    total = np.zeros(len(rows), dtype=np.uint64)
    for field, columns in enumerate(fixed):
        total += _weighted(columns, field)
    total += _weighted_texts(rows.keys, 3)
    if rows.metadata is not None:
        total += _weighted_texts(rows.metadata, 4)
    if rows.vectors is not None:
        has_vector = rows.vectors[:, 0] != NONE
        total[has_vector] += _weighted(rows.vectors[has_vector].view(np.uint8), 5)
    return total


def _weighted(columns: NDArray[np.uint8], field: int) -> NDArray[np.uint64]:
    return columns.astype(np.uint64) @ _weights(field, columns.shape[1])


def _weighted_texts(texts: TextColumn, field: int) -> NDArray[np.uint64]:
    """The weighted sum of each text's bytes; 0 for an empty one, because the NUL adds nothing."""
    count, first = len(texts.offsets) - 1, 0
    totals = np.empty(count, dtype=np.uint64)
    while first < count:  # in blocks: each byte takes 30 while it is summed
        last = texts.block_end(first, count, _SUMMED_AT_ONCE)
        totals[first:last] = _weighted_block(texts.blob, texts.offsets[first : last + 1], field)
        first = last
    return totals


def _weighted_block(blob: NDArray[np.uint8], offsets: NDArray[Any], field: int) -> NDArray[np.uint64]:
    start, end = int(offsets[0]), int(offsets[-1])
    lengths = offsets[1:] - offsets[:-1]
    within = np.arange(start, end, dtype=offsets.dtype) - np.repeat(offsets[:-1], lengths)
    sums = np.zeros(end - start + 1, dtype=np.uint64)
    np.cumsum(blob[start:end].astype(np.uint64) * _weights(field, int(lengths.max()))[within], out=sums[1:])
    at = offsets.astype(np.int64) - start
    return sums[at[1:]] - sums[at[:-1]]


def _weights(field: int, count: int) -> NDArray[np.uint64]:
    """`count` odd numbers for a field; a smaller count gives a prefix of them."""
    return _weight_table(field, 1 << max(8, (count - 1).bit_length()))[:count]


@lru_cache(maxsize=32)
def _weight_table(field: int, count: int) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 over field * 2^40 + 1, + 2, …"""
    x = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(field << 40)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) | np.uint64(1)
