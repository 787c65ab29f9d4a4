"""The truth of an embedded index: a SQLite database (WAL, synchronous FULL) with a checksum a row.

    facts(name, value, checksum)    what the index is; its state after the last commit; the projection of its vectors
    items(number, key, record, metadata, vector)    record: place, checksum and code; number: ascends with every write
    removed(number, record)         what was removed or replaced since the snapshot

`number` orders the writes: an open index reads those it has not seen. A commit is counted in the state and, after it,
in a file beside the database: a write-ahead log that lost its end is noticed instead of answering from yesterday.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BusyError, FolderError, InputError, first_line
from ...hamming.bits import Codes, bytes_for
from ...hamming.layout import compact_type
from ..rows import Gathered, Rows, checksums, no_vectors
from ..texts import Texts

DATABASE, COMMITS = "index.db", "commits"

_AT_A_TIME = 1 << 13
_NO_NUMBERS, _NO_CHECKS = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
_MODULUS = 1 << 64
_SETTINGS = ("synchronous=FULL", "cell_size_check=ON", "cache_size=-32768", "wal_autocheckpoint=4000")
_COUNTED = struct.Struct("<QI")
_TABLES = """
CREATE TABLE IF NOT EXISTS facts(name TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS items(number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, record BLOB NOT NULL,
                                 metadata TEXT, vector BLOB);
CREATE TABLE IF NOT EXISTS removed(number INTEGER PRIMARY KEY, record BLOB NOT NULL);
"""

# The columns of some rows, each as one value; whatever the order of rows, it is the same in all columns.
_SOME = "FROM (SELECT * FROM items WHERE {})"
_COLUMNS = f"""SELECT count(*), group_concat(number), group_concat(key, char(0)), group_concat(record, ''),
                      count(metadata), count(vector) {_SOME}"""
_METADATA = f"SELECT group_concat(coalesce(metadata, ''), char(0)) {_SOME}"
_VECTORS = f"SELECT group_concat(vector IS NOT NULL, ''), group_concat(coalesce(vector, ''), '') {_SOME}"


@dataclass(frozen=True)
class State:
    """What a commit leaves behind."""

    commits: int = 0
    items: int = 0
    sum: int = 0  # of all rows' checksums, modulo 2^64: no row can vanish unnoticed
    last: int = 0  # number of the last write
    snapshot: str = ""  # its file; it holds the items up to `upto` less those removed up to `upto`
    upto: int = 0

    def after(self, items: int, checksums: int, writes: int) -> State:
        """The state after one more commit with so many more items, so much more in the sum and so many writes."""
        return replace(
            self,
            commits=self.commits + 1,
            items=self.items + items,
            sum=(self.sum + checksums) % _MODULUS,
            last=self.last + writes,
        )


class Store:
    """The database of one index."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self._timeout = timeout
        self.closed = False
        with self.explained():
            self._counter = os.open(folder / COMMITS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._db = sqlite3.connect(self.path, timeout, isolation_level=None, check_same_thread=False)
            try:
                self._db.text_factory = bytes
                _patiently(lambda: self._db.execute("PRAGMA journal_mode=WAL").fetchone(), timeout)
                for setting in _SETTINGS:
                    self._db.execute(f"PRAGMA {setting}").fetchone()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Ends the use of the database."""
        if not self.closed:
            self.closed = True
            self._db.close()
            os.close(self._counter)

    def make_tables(self) -> None:
        """Makes the tables where they are missing; inside `writing`."""
        for statement in _TABLES.split(";"):
            self._db.execute(statement)

    def is_made(self) -> bool:
        """Whether this database is an index already."""
        with self.explained():
            found = self._db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'facts'").fetchone()
            return bool(found[0]) and self.fact("about") is not None

    def version(self) -> int:
        """A number that changes when another process commits."""
        with self.explained():
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction that nobody else writes beside; durable when the block ends, undone by an error in it."""
        with self.explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[State]:
        """The state, and a view of the database that stays as it was then."""
        with self.explained():
            if self.closed:
                raise InputError(f"this handle of {self.folder} is closed: open the index again")
            counted = self._counted()  # before the view is taken: commits in between are fine
            self._db.execute("BEGIN")
            try:
                state = self.state()
                if state.commits < counted:
                    raise FolderError(
                        f"{self.folder} has lost commits ({state.commits} of {counted} are there): its write-ahead log "
                        "is damaged or missing; copy the whole folder again"
                    )
                yield state
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def state(self) -> State:
        """What the last commit left."""
        return State(**json.loads(self.fact("state") or b"{}"))

    def set_state(self, state: State) -> None:
        """Part of every transaction that writes."""
        self.set_fact("state", json.dumps(vars(state)).encode())

    def count_commit(self, commits: int) -> None:
        """Notes, after a commit, that it was made."""
        data = struct.pack("<Q", commits)
        os.pwrite(self._counter, data + struct.pack("<I", zlib.crc32(data)), 0)

    def fact(self, name: str) -> bytes | None:
        """What is stored under this name."""
        found = self._db.execute("SELECT value, checksum FROM facts WHERE name = ?", (name,)).fetchone()
        if found is None:
            return None
        value = found[0]
        if not isinstance(value, bytes) or zlib.crc32(name.encode() + value) != found[1]:
            raise self.damaged(f"the fact {name!r} fails its checksum")
        return value

    def set_fact(self, name: str, value: bytes) -> None:
        """Stores a value under this name."""
        row = (name, value, zlib.crc32(name.encode() + value))
        self._db.execute("INSERT OR REPLACE INTO facts VALUES(?, ?, ?)", row)

    def items(self, after: int, bits: int) -> tuple[Rows | None, int]:
        """The items written after this number, in the order they were inserted, and the sum of their checksums."""
        gathered, total = Gathered(), 0
        while True:
            numbers, rows, checks = self._rows("number > ? ORDER BY number LIMIT ?", (after, _AT_A_TIME), bits)
            if rows is None:
                return gathered.rows(), total % _MODULUS
            gathered.append(rows)
            total += int(checks.sum(dtype=np.uint64))
            after = int(numbers.max())

    def items_of(self, keys: Sequence[bytes], bits: int) -> tuple[NDArray[np.int64], Rows | None, NDArray[np.uint64]]:
        """The numbers, rows and checksums of the items that have one of these keys."""
        gathered, numbers, checks = Gathered(), [_NO_NUMBERS], [_NO_CHECKS]
        for start in range(0, len(keys), _AT_A_TIME):
            wanted = json.dumps([key.decode() for key in keys[start : start + _AT_A_TIME]])
            found = self._rows("key IN (SELECT value FROM json_each(?)) ORDER BY number", (wanted,), bits)
            if found[1] is not None:
                numbers.append(found[0])
                gathered.append(found[1])
                checks.append(found[2])
        return np.concatenate(numbers), gathered.rows(in_order=False), np.concatenate(checks)

    def removed(self, after: int, bits: int) -> tuple[NDArray[np.int64], Codes]:
        """The places and codes of the items removed or replaced by a write after this number."""
        found = self._db.execute("SELECT number, record FROM removed WHERE number > ?", (after,)).fetchall()
        try:
            numbers = np.fromiter((row[0] for row in found), dtype=np.int64, count=len(found))
            records = self._records(b"".join(row[1] for row in found), len(found), bits)
        except (ValueError, TypeError) as problem:
            raise self.damaged(f"a removal cannot be read: {first_line(problem)}") from None
        codes = np.ascontiguousarray(records["code"])
        right = checksums(numbers, _bare(records["place"], codes))
        if (right != records["checksum"]).any():
            raise self.damaged("a removal fails its checksum")
        return records["place"], codes

    def insert(self, first: int, rows: Rows) -> int:
        """Stores rows under the numbers from `first` on, and gives the sum of their checksums."""
        numbers = np.arange(first, first + len(rows), dtype=np.int64)
        checks = checksums(numbers, rows)
        everything = slice(0, len(rows))
        metadata: list[str | None] = [None] * len(rows)
        if rows.metadata is not None:
            metadata = [text or None for text in rows.metadata.at(everything)]
        vectors: list[bytes | None] = [None] * len(rows)
        if rows.vectors is not None:
            there = (rows.vectors[:, 0] != -128).tolist()
            vectors = [row.tobytes() if has else None for row, has in zip(rows.vectors, there, strict=True)]
        records = _record_bytes(rows.places, checks, rows.codes)
        self._db.executemany(
            "INSERT INTO items VALUES(?, ?, ?, ?, ?)",
            zip(numbers.tolist(), rows.keys.at(everything), records, metadata, vectors, strict=True),
        )
        return int(checks.sum(dtype=np.uint64))

    def remove(self, first: int, numbers: NDArray[np.int64], rows: Rows) -> None:
        """Takes items out, noting it under the numbers from `first` on."""
        self._db.executemany("DELETE FROM items WHERE number = ?", [(number,) for number in numbers.tolist()])
        noted = np.arange(first, first + len(rows), dtype=np.int64)
        records = _record_bytes(rows.places, checksums(noted, _bare(rows.places, rows.codes)), rows.codes)
        self._db.executemany("INSERT INTO removed VALUES(?, ?)", zip(noted.tolist(), records, strict=True))

    def forget_removed(self, upto: int) -> None:
        """Drops the notes of removals that a snapshot contains."""
        self._db.execute("DELETE FROM removed WHERE number <= ?", (upto,))

    def problems(self) -> list[str]:
        """What SQLite finds wrong with its own file."""
        with self.explained():
            told = self._db.execute("PRAGMA integrity_check").fetchall()
        problems = ["; ".join(row[0].decode(errors="replace").splitlines()) for row in told]
        return [] if problems == ["ok"] else problems

    def bytes_on_disk(self) -> int:
        """The size of the database and its log."""
        return sum(path.stat().st_size for path in self.folder.glob(f"{DATABASE}*") if path.exists())

    def damaged(self, what: str) -> FolderError:
        """An error that says the database cannot be trusted."""
        return FolderError(f"{self.path} is damaged ({what}): restore the folder from a copy")

    def _rows(
        self, which: str, values: tuple[Any, ...], bits: int
    ) -> tuple[NDArray[np.int64], Rows | None, NDArray[np.uint64]]:
        """The numbers, rows and checksums of some items, verified. SQLite joins each column: a row costs no object."""
        found = self._db.execute(_COLUMNS.format(which), values).fetchone()
        count, numbers, keys, records, with_metadata, with_vector = found
        if not count:
            return _NO_NUMBERS, None, _NO_CHECKS
        texts = small = None
        try:
            heads = self._records(records, count, bits)
            if with_vector:
                has_vector, vectors = self._db.execute(_VECTORS.format(which), values).fetchone()
                there = np.frombuffer(has_vector, dtype=np.uint8) == ord("1")
                small = no_vectors(count, len(vectors) // with_vector)
                small[there] = np.frombuffer(vectors, dtype=np.int8).reshape(with_vector, -1)
            if with_metadata:
                texts = Texts.joined(self._db.execute(_METADATA.format(which), values).fetchone()[0], count)
            places = heads["place"].astype(compact_type(int(heads["place"].max())))
            rows = Rows(places, np.ascontiguousarray(heads["code"]), Texts.joined(keys, count), texts, small)
            at = np.fromstring(numbers, dtype=np.int64, sep=",")
            if len(at) != count:
                raise ValueError(f"{len(at)} numbers, not {count}")
        except (ValueError, TypeError) as problem:  # a value of another type or length than any that was written
            raise self.damaged(f"a row cannot be read: {first_line(problem)}") from None
        checks = checksums(at, rows)
        wrong = np.flatnonzero(checks != heads["checksum"])
        if len(wrong):
            key = rows.keys.blob_of(int(wrong[0]))[:80].decode(errors="replace")
            raise self.damaged(f"the row of key {key!r} fails its checksum")
        return at, rows, checks

    def _records(self, raw: bytes, count: int, bits: int) -> NDArray[Any]:
        dtype = _record_type(bytes_for(bits))
        if len(raw) != count * dtype.itemsize:
            raise ValueError("a record has another length")
        return np.frombuffer(raw, dtype=dtype)

    def _counted(self) -> int:
        """How many commits are known to have been made; 0 where the note is not whole."""
        data = os.pread(self._counter, _COUNTED.size, 0)
        if len(data) < _COUNTED.size:
            return 0
        commits, check = _COUNTED.unpack(data)
        return int(commits) if zlib.crc32(data[:8]) == check else 0

    @contextmanager
    def explained(self) -> Iterator[None]:
        """SQLite's errors in this package's words."""
        try:
            yield
        except sqlite3.Error as problem:
            if self.closed and isinstance(problem, sqlite3.ProgrammingError):
                raise InputError(f"this handle of {self.folder} is closed: open the index again") from None
            code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyError(
                    f"{self.folder} is being written by another process, and was for {self._timeout:g} s: "
                    "try again, or open it with a longer timeout="
                ) from None
            if code == sqlite3.SQLITE_FULL:
                raise FolderError(
                    f"no space is left for {self.folder}: nothing of this call was written; free some and repeat it"
                ) from None
            if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
                raise FolderError(
                    f"{self.path} cannot be read or written ({first_line(problem)}): nothing of this call was written; "
                    "check the disk's space and the permissions"
                ) from None
            raise self.damaged(first_line(problem)) from None
        except PermissionError as problem:
            raise FolderError(f"cannot write to {self.folder}: {first_line(problem)}") from None
        except (UnicodeDecodeError, OverflowError) as problem:
            raise self.damaged(first_line(problem)) from None


def _bare(places: NDArray[Any], codes: Codes) -> Rows:
    return Rows(places, codes, Texts.of([b""] * len(places)), None, None)


def _record_type(width: int) -> np.dtype[Any]:
    return np.dtype([("place", "<i8"), ("checksum", "<u8"), ("code", "u1", (width,))])


def _record_bytes(places: NDArray[Any], checks: NDArray[np.uint64], codes: Codes) -> list[bytes]:
    records = np.empty(len(places), dtype=_record_type(codes.shape[1]))
    records["place"], records["checksum"], records["code"] = places, checks, codes
    raw, size = records.tobytes(), records.dtype.itemsize
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def _patiently(action: Any, timeout: float) -> None:
    """Repeats what SQLite refuses at once while another process opens the same file."""
    until = time.monotonic() + timeout
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
