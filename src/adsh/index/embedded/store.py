"""The items of an embedded index in SQLite, with a checksum per row. The database is authoritative.

    facts(name, value, checksum)    the header; the state after the last commit; the projection of the vectors; notes
    items(number, key, record, metadata, vector)    record: insertion order, checksum and code
    removed(number, record)         the items removed or replaced since the snapshot
    networks(number, generation)    items with a code by the network, and which model's: created with the first

`number` grows with every write: an open index reads the numbers that it has not seen yet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import first_line
from ...hamming.bits import Codes, bytes_for
from ...hamming.layout import compact_type
from ...hamming.small_vectors import NONE
from ..rows import Rows, RowsBuilder, checksums, no_vectors
from ..text_column import TextColumn
from .database import MODULUS, NETWORKS, Database

_AT_A_TIME = 1 << 13
_NO_NUMBERS, _NO_CHECKS = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)

# The columns of a selection, each as one value; the order of the rows is the same in all of them.
_SELECTION = "FROM (SELECT * FROM items WHERE {})"
_COLUMNS = f"""SELECT count(*), group_concat(number), group_concat(key, char(0)), group_concat(record, ''),
                      count(metadata), count(vector) {_SELECTION}"""
_METADATA = f"SELECT group_concat(coalesce(metadata, ''), char(0)) {_SELECTION}"
_VECTORS = f"SELECT group_concat(vector IS NOT NULL, ''), group_concat(coalesce(vector, ''), '') {_SELECTION}"

_NETWORKS = """
SELECT key, generation FROM items JOIN networks USING (number) WHERE key IN (SELECT value FROM json_each(?))
"""
_OUTDATED = """
SELECT key FROM items JOIN networks USING (number) WHERE generation < ? AND key > ? ORDER BY key LIMIT ?
"""


class StoredRows(NamedTuple):
    """Rows as they were read from the database."""

    numbers: NDArray[np.int64]
    rows: Rows | None  # None if there are none
    checks: NDArray[np.uint64]

    @property
    def checksum(self) -> int:
        """The sum of the rows' checksums, modulo 2^64."""
        return int(self.checks.sum(dtype=np.uint64))


class Store(Database):
    """The items of one index, and what was removed of them."""

    def items(self, after: int, bits: int) -> tuple[Rows | None, int]:
        """Return the items written after this number, in the order of insertion, and the sum of their checksums."""
        builder, total = RowsBuilder(), 0
        while True:
            found = self._select("number > ? ORDER BY number LIMIT ?", (after, _AT_A_TIME), bits)
            if found.rows is None:
                return builder.rows(), total % MODULUS
            builder.append(found.rows)
            total += found.checksum
            after = int(found.numbers.max())

    def items_of(self, keys: Sequence[bytes], bits: int) -> StoredRows:
        """Return the items that have one of these keys."""
        builder, numbers, checks = RowsBuilder(), [_NO_NUMBERS], [_NO_CHECKS]
        for start in range(0, len(keys), _AT_A_TIME):
            names = json.dumps([key.decode() for key in keys[start : start + _AT_A_TIME]])
            found = self._select("key IN (SELECT value FROM json_each(?)) ORDER BY number", (names,), bits)
            if found.rows is not None:
                numbers.append(found.numbers)
                builder.append(found.rows)
                checks.append(found.checks)
        return StoredRows(np.concatenate(numbers), builder.rows(in_order=False), np.concatenate(checks))

    def items_behind(self, key: str, count: int, bits: int) -> Rows | None:
        """Return the items whose keys follow this one in alphabetical order.

        Args:
            key: "" for the first items.
            count: how many to return at most.
            bits: the length of the codes.

        Returns:
            The items in that order; None if there are none.
        """
        return self._select("key > ? ORDER BY key LIMIT ?", (key, count), bits).rows

    def removed(self, after: int, bits: int) -> tuple[NDArray[np.int64], Codes]:
        """Return the insertion order and codes of the items removed or replaced by a write after this number."""
        found = self._db.execute("SELECT number, record FROM removed WHERE number > ?", (after,)).fetchall()
        try:
            numbers = np.fromiter((row[0] for row in found), dtype=np.int64, count=len(found))
            records = _records(b"".join(row[1] for row in found), len(found), bits)
        except (ValueError, TypeError) as problem:
            raise self.damaged(f"a removal cannot be read: {first_line(problem)}") from None
        codes = np.ascontiguousarray(records["code"])
        expected = checksums(numbers, _without_contents(records["insertion_order"], codes))
        if (expected != records["checksum"]).any():
            raise self.damaged("a removal fails its checksum")
        return records["insertion_order"], codes

    def insert(self, first: int, rows: Rows) -> int:
        """Store rows under the numbers from `first` on, and return the sum of their checksums."""
        numbers = np.arange(first, first + len(rows), dtype=np.int64)
        checks = checksums(numbers, rows)
        everything = slice(0, len(rows))
        metadata: list[str | None] = [None] * len(rows)
        if rows.metadata is not None:
            metadata = [text or None for text in rows.metadata.at(everything)]
        vectors: list[bytes | None] = [None] * len(rows)
        if rows.vectors is not None:
            has_vector = (rows.vectors[:, 0] != NONE).tolist()
            vectors = [row.tobytes() if has else None for row, has in zip(rows.vectors, has_vector, strict=True)]
        records = _record_bytes(rows.insertion_order, checks, rows.codes)
        self._db.executemany(
            "INSERT INTO items VALUES(?, ?, ?, ?, ?)",
            zip(numbers.tolist(), rows.keys.at(everything), records, metadata, vectors, strict=True),
        )
        return int(checks.sum(dtype=np.uint64))

    def remove(self, first: int, numbers: NDArray[np.int64], rows: Rows) -> None:
        """Delete items, and record their removal.

        Args:
            first: the number of the first record of a removal.
            numbers: the numbers of the items to delete.
            rows: the same items.
        """
        self._db.executemany("DELETE FROM items WHERE number = ?", [(number,) for number in numbers.tolist()])
        removals = np.arange(first, first + len(rows), dtype=np.int64)
        checks = checksums(removals, _without_contents(rows.insertion_order, rows.codes))
        records = _record_bytes(rows.insertion_order, checks, rows.codes)
        self._db.executemany("INSERT INTO removed VALUES(?, ?)", zip(removals.tolist(), records, strict=True))

    def mark(self, first: int, by_network: Sequence[tuple[int, int]]) -> None:
        """Record which of the rows inserted from number `first` on have codes by a network.

        Args:
            first: the number of the first row.
            by_network: the position among the rows, and the generation of the model, of each.
        """
        if by_network:
            self._db.execute(NETWORKS)
            rows = [(first + at, generation) for at, generation in by_network]
            self._db.executemany("INSERT OR REPLACE INTO networks VALUES(?, ?)", rows)

    def outdated(self, generation: int, after: str, count: int) -> list[str]:
        """Return keys of items by networks of earlier generations, sorted.

        Args:
            generation: of the present model.
            after: only keys behind this one.
            count: how many at most.
        """
        if not self._has_networks():
            return []
        found = self._db.execute(_OUTDATED, (generation, after, count)).fetchall()
        return [row[0].decode() for row in found]

    def networks(self, keys: Sequence[bytes]) -> dict[str, int]:
        """Return the generation of the model for those of these items whose codes a network computed."""
        if not self._has_networks():
            return {}
        names = json.dumps([key.decode() for key in keys])
        return {key.decode(): int(generation) for key, generation in self._db.execute(_NETWORKS, (names,))}

    def _has_networks(self) -> bool:
        return self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'networks'").fetchone() is not None

    def forget_removed(self, upto: int) -> None:
        """Delete the records of removals that a snapshot contains."""
        self._db.execute("DELETE FROM removed WHERE number <= ?", (upto,))
        if self._has_networks():
            self._db.execute("DELETE FROM networks WHERE number NOT IN (SELECT number FROM items)")

    def _select(self, condition: str, values: tuple[Any, ...], bits: int) -> StoredRows:
        """Return the selected items, verified. SQLite concatenates each column: a row costs no Python object.

        Args:
            condition: in SQL, with its order and limit.
            values: of its parameters.
            bits: the length of the codes.

        Returns:
            The items, with their numbers and checksums.
        """
        found = self._db.execute(_COLUMNS.format(condition), values).fetchone()
        count, numbers, keys, raw, with_metadata, with_vector = found
        if not count:
            return StoredRows(_NO_NUMBERS, None, _NO_CHECKS)
        metadata = small = None
        try:
            records = _records(raw, count, bits)
            if with_vector:
                flags, vectors = self._db.execute(_VECTORS.format(condition), values).fetchone()
                has_vector = np.frombuffer(flags, dtype=np.uint8) == ord("1")
                small = no_vectors(count, len(vectors) // with_vector)
                small[has_vector] = np.frombuffer(vectors, dtype=np.int8).reshape(with_vector, -1)
            if with_metadata:
                texts = self._db.execute(_METADATA.format(condition), values).fetchone()[0]
                metadata = TextColumn.split(texts, count)
            order = records["insertion_order"]
            rows = Rows(
                order.astype(compact_type(int(order.max()))),
                np.ascontiguousarray(records["code"]),
                TextColumn.split(keys, count),
                metadata,
                small,
            )
            at = np.fromstring(numbers, dtype=np.int64, sep=",")
            if len(at) != count:
                raise ValueError(f"{len(at)} numbers, not {count}")
        except (ValueError, TypeError) as problem:  # a value of another type or length than any that was written
            raise self.damaged(f"a row cannot be read: {first_line(problem)}") from None
        checks = checksums(at, rows)
        wrong = np.flatnonzero(checks != records["checksum"])
        if len(wrong):
            key = rows.keys.blob_of(int(wrong[0]))[:80].decode(errors="replace")
            raise self.damaged(f"the row of key {key!r} fails its checksum")
        return StoredRows(at, rows, checks)


def _without_contents(insertion_order: NDArray[Any], codes: Codes) -> Rows:
    """Rows with empty keys, as the checksum of a removal covers them."""
    return Rows(insertion_order, codes, TextColumn.of([b""] * len(insertion_order)), None, None)


def _record_type(width: int) -> np.dtype[Any]:
    return np.dtype([("insertion_order", "<i8"), ("checksum", "<u8"), ("code", "u1", (width,))])


def _record_bytes(insertion_order: NDArray[Any], checks: NDArray[np.uint64], codes: Codes) -> list[bytes]:
    records = np.empty(len(insertion_order), dtype=_record_type(codes.shape[1]))
    records["insertion_order"], records["checksum"], records["code"] = insertion_order, checks, codes
    raw, size = records.tobytes(), records.dtype.itemsize
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def _records(raw: bytes, count: int, bits: int) -> NDArray[Any]:
    dtype = _record_type(bytes_for(bits))
    if len(raw) != count * dtype.itemsize:
        raise ValueError("a record has another length")
    return np.frombuffer(raw, dtype=dtype)
