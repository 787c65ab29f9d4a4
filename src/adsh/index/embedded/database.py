"""The SQLite file of an embedded index: transactions, facts, and SQLite's errors in plain words.

A commit is counted in the index's state and, afterwards, in the file `commits` next to the database. A write-ahead log
that lost its end is noticed by the difference, instead of the index answering from an older state.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import AdshError, BusyError, FolderError, InputError, first_line
from ..header import HEADER

DATABASE, COMMITS = "index.db", "commits"
MODULUS = 1 << 64  # of sums of checksums

_SETTINGS = ("synchronous=FULL", "cell_size_check=ON", "cache_size=-32768", "wal_autocheckpoint=4000")
_COUNTER = struct.Struct("<QI")
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
_NEEDS_LOG = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_TABLES = """
CREATE TABLE IF NOT EXISTS facts(name TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS items(number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, record BLOB NOT NULL,
                                 metadata TEXT, vector BLOB);
CREATE TABLE IF NOT EXISTS removed(number INTEGER PRIMARY KEY, record BLOB NOT NULL);
"""
NETWORKS = "CREATE TABLE IF NOT EXISTS networks(number INTEGER PRIMARY KEY, generation INTEGER NOT NULL)"


@dataclass(frozen=True)
class State:
    """The state of an index after a commit."""

    commits: int = 0
    items: int = 0
    sum: int = 0  # of all rows' checksums, modulo 2^64: no row can vanish unnoticed
    last: int = 0  # number of the last write
    snapshot: str = ""  # its file; it holds the items up to `upto` without those removed up to `upto`
    upto: int = 0

    def after(self, items: int, checksums: int, writes: int) -> State:
        """Return the state after one more commit.

        Args:
            items: how many items it adds; negative if it removes some.
            checksums: what it adds to the sum of checksums.
            writes: how many numbers it takes.

        Returns:
            The new state.
        """
        return replace(
            self,
            commits=self.commits + 1,
            items=self.items + items,
            sum=(self.sum + checksums) % MODULUS,
            last=self.last + writes,
        )


class Database:
    """One connection to the SQLite file (WAL, synchronous FULL) of an index."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self._timeout = timeout
        self.closed = False
        self.read_only = False
        self._reconnected = 0
        with self.translated_errors():
            self._counter = self._open_counter()
            try:
                self._db = self._connect()
            except BaseException:
                self._close_counter()
                raise

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        if not self.closed:
            self.closed = True
            self._db.close()
            self._close_counter()

    def create_tables(self) -> None:
        """Create the tables that are missing; inside `writing`."""
        for statement in _TABLES.split(";"):
            self._db.execute(statement)

    def is_initialized(self) -> bool:
        """Whether this database holds an index already."""
        with self.translated_errors():
            found = self._db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'facts'").fetchone()
            return bool(found[0]) and self.fact(HEADER) is not None

    def version(self) -> int:
        """Return a number that changes when another connection commits."""
        with self.translated_errors():
            self._follow_file()
            return self._reconnected << 32 | int(self._db.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a write transaction: durable when the block ends, rolled back on an error; no other writer meanwhile."""
        with self.translated_errors():
            if self.read_only:
                raise FolderError(
                    f"cannot write to {self.folder}: it is read-only; it can be searched, but not changed"
                )
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
        """Yield the state, in a transaction that sees the database as it is now."""
        with self.translated_errors():
            if self.closed:
                raise self._closed_error()
            counted = self._counted_commits()  # before the transaction begins: commits in between are fine
            self._db.execute("BEGIN")
            try:
                state = self.state()
                if state.commits < counted:
                    raise FolderError(
                        f"{self.folder} has lost commits ({state.commits} of {counted} are there): its write-ahead log "
                        "is damaged or missing; copy the complete folder again"
                    )
                yield state
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def state(self) -> State:
        """Return the state after the last commit."""
        return State(**json.loads(self.fact("state") or b"{}"))

    def set_state(self, state: State) -> None:
        """Store the state: part of every transaction that changes items."""
        self.set_fact("state", json.dumps(vars(state)).encode())

    def count_commit(self, commits: int) -> None:
        """Record, after a commit, how many there are."""
        assert self._counter is not None
        data = struct.pack("<Q", commits)
        os.pwrite(self._counter, data + struct.pack("<I", zlib.crc32(data)), 0)

    def fact(self, name: str) -> bytes | None:
        """Return the value stored under this name; None if there is none."""
        found = self._db.execute("SELECT value, checksum FROM facts WHERE name = ?", (name,)).fetchone()
        if found is None:
            return None
        value = found[0]
        if not isinstance(value, bytes) or zlib.crc32(name.encode() + value) != found[1]:
            raise self.damaged(f"the fact {name!r} fails its checksum")
        return value

    def set_fact(self, name: str, value: bytes) -> None:
        """Store a value under this name."""
        row = (name, value, zlib.crc32(name.encode() + value))
        self._db.execute("INSERT OR REPLACE INTO facts VALUES(?, ?, ?)", row)

    def problems(self) -> list[str]:
        """Return what SQLite finds wrong with its own file."""
        with self.translated_errors():
            lines = self._db.execute("PRAGMA integrity_check").fetchall()
        problems = ["; ".join(row[0].decode(errors="replace").splitlines()) for row in lines]
        return [] if problems == ["ok"] else problems

    def bytes_on_disk(self) -> int:
        """Return the size of the database and its log."""
        return sum(path.stat().st_size for path in self.folder.glob(f"{DATABASE}*") if path.exists())

    def damaged(self, reason: str) -> FolderError:
        """Return the error for a database that cannot be trusted."""
        return FolderError(f"{self.path} is damaged ({reason}): restore the folder from a copy")

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into this package's."""
        try:
            yield
        except sqlite3.Error as problem:
            raise self._translated(problem) from None
        except PermissionError as problem:
            raise FolderError(f"cannot write to {self.folder}: {first_line(problem)}") from None
        except (UnicodeDecodeError, OverflowError) as problem:
            raise self.damaged(first_line(problem)) from None

    def _open_counter(self) -> int | None:
        """Open the file of commits; None if it is missing where nothing can be written."""
        try:
            return os.open(self.folder / COMMITS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as problem:
            if problem.errno not in _UNWRITABLE or not self.path.exists():
                raise
        self.read_only = True
        with suppress(FileNotFoundError):
            return os.open(self.folder / COMMITS, os.O_RDONLY | os.O_CLOEXEC)
        return None

    def _close_counter(self) -> None:
        if self._counter is not None:
            os.close(self._counter)

    def _connect(self) -> sqlite3.Connection:
        if self.read_only:
            return self._connect_read_only()
        db = sqlite3.connect(self.path, self._timeout, isolation_level=None, check_same_thread=False)
        try:
            db.text_factory = bytes
            _retry_while_busy(lambda: db.execute("PRAGMA journal_mode=WAL").fetchone(), self._timeout)
            for setting in _SETTINGS:
                db.execute(f"PRAGMA {setting}").fetchone()
        except BaseException:
            db.close()
            raise
        return db

    def _connect_read_only(self) -> sqlite3.Connection:
        """Connect without writing. SQLite needs the log's shared memory, unless it may assume that nobody writes.

        A writer elsewhere has both open; without one there is no log, and then the file alone is complete.
        """
        self._stamp = self._file_stamp()
        for mode in ("mode=ro", "mode=ro&immutable=1"):
            address = f"{self.path.resolve().as_uri()}?{mode}"
            db = sqlite3.connect(address, self._timeout, isolation_level=None, check_same_thread=False, uri=True)
            try:
                db.text_factory = bytes
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
                return db
            except sqlite3.OperationalError as problem:
                db.close()
                if "immutable" in mode or problem.sqlite_errorcode & 0xFF not in _NEEDS_LOG:
                    raise
                if self._log_size():
                    raise FolderError(
                        f"{self.folder} is read-only and has a write-ahead log that was not merged: open the index "
                        "once where it can be written"
                    ) from None
        raise AssertionError  # the last mode returns or raises

    def _follow_file(self) -> None:
        """Connect again if the file of a read-only index was written elsewhere, which its connection may not notice."""
        if self.read_only and not self.closed and self._stamp != self._file_stamp():
            self._db.close()
            self._db = self._connect_read_only()
            self._reconnected += 1

    def _file_stamp(self) -> tuple[int, ...]:
        found = self.path.stat()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, self._log_size()

    def _log_size(self) -> int:
        try:
            return self.path.with_name(f"{DATABASE}-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def _translated(self, problem: sqlite3.Error) -> AdshError:
        if self.closed and isinstance(problem, sqlite3.ProgrammingError):
            return self._closed_error()
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF  # missing on errors of Python's own module
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return BusyError(
                f"{self.folder} is being written by another process, and was for {self._timeout:g} s: "
                "try again, or open it with a longer timeout="
            )
        if code == sqlite3.SQLITE_FULL:
            return FolderError(
                f"no space is left for {self.folder}: nothing of this call was written; free some and repeat it"
            )
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return FolderError(
                f"{self.path} cannot be read or written ({first_line(problem)}): nothing of this call was written; "
                "check the disk's space and the permissions"
            )
        return self.damaged(first_line(problem))

    def _closed_error(self) -> InputError:
        return InputError(f"this handle of {self.folder} is closed: open the index again")

    def _counted_commits(self) -> int:
        """How many commits the counter file knows of; 0 if it is incomplete."""
        data = b"" if self._counter is None else os.pread(self._counter, _COUNTER.size, 0)
        if len(data) < _COUNTER.size:
            return 0
        commits, check = _COUNTER.unpack(data)
        return int(commits) if zlib.crc32(data[:8]) == check else 0


def _retry_while_busy(action: Callable[[], object], timeout: float) -> None:
    """Repeat what SQLite refuses at once while another process opens the same file."""
    until = time.monotonic() + timeout
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
