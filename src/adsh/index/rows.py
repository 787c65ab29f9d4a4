"""Items as columns, and the checksum of each: what the database holds and a segment is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes
from ..hamming.small_vectors import NONE
from .matches import Item
from .texts import Texts, joined


@dataclass(frozen=True)
class Rows:
    """n items, in the order they were inserted."""

    places: NDArray[Any]  # (n,) when each item came; an item that is replaced keeps its place
    codes: Codes  # (n, bytes)
    keys: Texts
    metadata: Texts | None  # JSON, empty where an item has none; None where no item has any
    vectors: NDArray[np.int8] | None  # (n, dimensions); None where no item has any

    def __len__(self) -> int:
        return len(self.places)

    def take(self, positions: NDArray[np.int64]) -> Rows:
        """The items at these positions."""
        return Rows(
            self.places[positions],
            self.codes[positions],
            self.keys.take(positions),
            None if self.metadata is None else self.metadata.take(positions),
            None if self.vectors is None else self.vectors[positions],
        )

    def items(self) -> Iterator[Item]:
        """Each item by itself."""
        everything = slice(0, len(self))
        texts = [""] * len(self) if self.metadata is None else self.metadata.at(everything)
        for key, code, text in zip(self.keys.at(everything), self.codes, texts, strict=True):
            yield Item(key, code.tobytes(), json.loads(text) if text else None)

    def equals(self, other: Rows) -> bool:
        """Whether both hold the same items with the same contents."""
        mine, yours = (rows._contents() for rows in (self, other))
        return len(mine) == len(yours) and all(map(np.array_equal, mine, yours))

    def _contents(self) -> list[NDArray[Any]]:
        """All that is stored; a column in which no item has anything is as good as none."""
        texts = [self.keys]
        if self.metadata is not None and self.metadata.blob.any():
            texts.append(self.metadata)
        columns = [self.places, self.codes, *(part for one in texts for part in one.parts())]
        if self.vectors is not None and (self.vectors[:, 0] != NONE).any():
            columns.append(self.vectors)
        return columns


class Gathered:
    """Rows put together part by part; each column is freed as it is joined, so that no two copies of all exist."""

    def __init__(self, fold: int = 64) -> None:
        self._fold = fold  # parts that are joined at once: thousands of small arrays would leave memory in pieces
        self._folded = Gathered(0) if fold else None
        self._count: list[int] = []
        self._places: list[NDArray[Any]] = []
        self._codes: list[Codes] = []
        self._keys: list[Texts] = []
        self._metadata: list[Texts | None] = []
        self._vectors: list[NDArray[np.int8] | None] = []

    def append(self, rows: Rows) -> None:
        """Adds a part."""
        self._count.append(len(rows))
        self._places.append(rows.places)
        self._codes.append(rows.codes)
        self._keys.append(rows.keys)
        self._metadata.append(rows.metadata)
        self._vectors.append(rows.vectors)
        if self._folded is not None and len(self._count) == self._fold:
            self._folded.append(self._taken())

    def rows(self, *, in_order: bool = True) -> Rows | None:
        """All of them, once, in the order they were inserted unless told otherwise; None where there are none."""
        if self._folded is not None:
            if self._count:
                self._folded.append(self._taken())
            return self._folded.rows(in_order=in_order)
        if not self._count:
            return None
        rows = self._taken()
        if not in_order or (rows.places[1:] > rows.places[:-1]).all():
            return rows
        return rows.take(np.argsort(rows.places, kind="stable"))

    def _taken(self) -> Rows:
        """What was gathered, joined; nothing of it is left here."""
        metadata, vectors = self._texts(), self._small()
        rows = Rows(_concatenated(self._places), _concatenated(self._codes), joined(self._keys), metadata, vectors)
        for column in (self._count, self._metadata, self._vectors):
            column.clear()
        return rows

    def _texts(self) -> Texts | None:
        if all(part is None for part in self._metadata):
            return None
        parts = zip(self._metadata, self._count, strict=True)
        return joined([Texts.of([b""] * count) if part is None else part for part, count in parts])

    def _small(self) -> NDArray[np.int8] | None:
        width = next((part.shape[1] for part in self._vectors if part is not None), None)
        if width is None:
            return None
        parts = zip(self._vectors, self._count, strict=True)
        return _concatenated([no_vectors(count, width) if part is None else part for part, count in parts])


def _concatenated(parts: list[NDArray[Any]]) -> NDArray[Any]:
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    parts.clear()
    return whole


def join(parts: list[Rows]) -> Rows:
    """All items of one part or more, in the order they were inserted; the list is emptied."""
    gathered = Gathered()
    while parts:
        gathered.append(parts.pop())
    rows = gathered.rows()
    assert rows is not None
    return rows


def no_vectors(n: int, width: int) -> NDArray[np.int8]:
    """The vectors of items that have none."""
    vectors = np.zeros((n, width), dtype=np.int8)
    vectors[:, 0] = NONE
    return vectors


def checksums(numbers: NDArray[np.int64], rows: Rows) -> NDArray[np.uint64]:
    """One checksum a row over its number, place, code, key, metadata and vector.

    A sum, modulo 2^64, of each byte times an odd weight of its own: a change of any one byte always shows, any other
    with probability 1 - 2^-64, and whole columns are summed at once.
    """
    fixed = [
        np.ascontiguousarray(numbers, dtype="<i8").view(np.uint8).reshape(len(rows), 8),
        np.ascontiguousarray(rows.places, dtype="<i8").view(np.uint8).reshape(len(rows), 8),
        rows.codes,
    ]
    total = np.zeros(len(rows), dtype=np.uint64)
    for field, columns in enumerate(fixed):
        total += _weighted(columns, field)
    total += _weighted_texts(rows.keys, 3)
    if rows.metadata is not None:
        total += _weighted_texts(rows.metadata, 4)
    if rows.vectors is not None:
        there = rows.vectors[:, 0] != NONE
        total[there] += _weighted(rows.vectors[there].view(np.uint8), 5)
    return total


def _weighted(columns: NDArray[np.uint8], field: int) -> NDArray[np.uint64]:
    return columns.astype(np.uint64) @ _weights(field, columns.shape[1])


def _weighted_texts(texts: Texts, field: int) -> NDArray[np.uint64]:
    """The weighted sum of each text's bytes; 0 for an empty one, as the NUL adds nothing."""
    start, end = int(texts.offsets[0]), int(texts.offsets[-1])
    lengths = texts.lengths()
    within = np.arange(start, end, dtype=texts.offsets.dtype) - np.repeat(texts.offsets[:-1], lengths)
    longest = int(lengths.max()) if len(lengths) else 0
    sums = np.zeros(end - start + 1, dtype=np.uint64)
    np.cumsum(texts.blob[start:end].astype(np.uint64) * _weights(field, longest)[within], out=sums[1:])
    at = texts.offsets.astype(np.int64) - start
    return sums[at[1:]] - sums[at[:-1]]


def _weights(field: int, count: int) -> NDArray[np.uint64]:
    """`count` odd numbers for a field; those of a longer text start with those of a shorter one."""
    return _table(field, 1 << max(8, (count - 1).bit_length()))[:count]


@lru_cache(maxsize=32)
def _table(field: int, count: int) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 over field * 2^40 + 1, + 2, …"""
    x = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(field << 40)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) | np.uint64(1)
