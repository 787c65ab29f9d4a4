"""Items as columns, and the checksum of each: what the database holds and a segment is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes
from ..hamming.small_vectors import NONE
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


def join(parts: list[Rows]) -> Rows:
    """All items of all parts, in the order they were inserted."""
    if len(parts) == 1:
        rows = parts[0]
    else:
        rows = Rows(
            np.concatenate([part.places for part in parts]),
            np.concatenate([part.codes for part in parts]),
            joined(part.keys for part in parts),
            _joined_metadata(parts),
            _joined_vectors(parts),
        )
    if (rows.places[1:] > rows.places[:-1]).all():
        return rows
    return rows.take(np.argsort(rows.places, kind="stable"))


def _joined_metadata(parts: list[Rows]) -> Texts | None:
    if all(part.metadata is None for part in parts):
        return None
    return joined(Texts.of([b""] * len(part)) if part.metadata is None else part.metadata for part in parts)


def _joined_vectors(parts: list[Rows]) -> NDArray[np.int8] | None:
    width = next((part.vectors.shape[1] for part in parts if part.vectors is not None), None)
    if width is None:
        return None
    return np.concatenate([no_vectors(len(part), width) if part.vectors is None else part.vectors for part in parts])


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
    within = np.arange(end - start) - np.repeat(texts.offsets[:-1].astype(np.int64) - start, lengths)
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
