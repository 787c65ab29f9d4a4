"""Connections to a PostgreSQL server, lent one at a time, and its errors in this package's words."""

from __future__ import annotations

import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors as codes

from ...errors import AdshError, BusyError, InputError, ServerError, first_line
from ...utils.urls import secrets_of, without_secrets

Connection = psycopg.Connection[tuple[Any, ...]]

# Durable when a commit returns, whatever the server's default; plans are small, and compiling them costs more.
_SETTINGS = """
SELECT set_config('lock_timeout', %s, false), set_config('jit', 'off', false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                                        ELSE current_setting('synchronous_commit') END, false)
"""


class Server:
    """A server at an address. Each user of a handle, such as a thread, has a connection of its own while it works."""

    def __init__(self, address: str, shown_as: str, timeout: float) -> None:
        self.name = shown_as
        self._address = address
        self._secrets = secrets_of(address)
        self._timeout = timeout
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection in a transaction that sees one state of the database and changes nothing."""
        with self._lent() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction: durable when the block ends, undone by an error in it."""
        with self._lent() as connection, connection.transaction():
            yield connection

    @contextmanager
    def plain(self) -> Iterator[Connection]:
        """A connection outside any transaction, for what PostgreSQL does not do within one."""
        with self._lent() as connection:
            yield connection

    def close(self) -> None:
        """Ends all connections."""
        with self._lock:
            self._closed, idle = True, self._idle
            self._idle = []
        for connection in idle:
            connection.close()

    @contextmanager
    def _lent(self) -> Iterator[Connection]:
        with self._lock:
            if self._closed:
                raise InputError(f"this handle of {self.name} is closed: open the index again")
            connection = self._idle.pop() if self._idle else None
        if connection is not None and _has_ended(connection):
            connection.close()
            connection = None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        except AdshError:
            raise
        except psycopg.Error as problem:
            lost = connection.broken or connection.closed
            if lost:  # what is idle was lost with it
                with self._lock:
                    idle, self._idle = self._idle, []
                for other in idle:
                    other.close()
            raise self._explained(problem, lost) from None
        finally:
            with self._lock:
                usable = not (connection.broken or connection.closed or self._closed)
                if usable:
                    self._idle.append(connection)
            if not usable:
                connection.close()

    def _connect(self) -> Connection:
        wait: dict[str, Any] = {}
        if "connect_timeout=" not in self._address:
            wait["connect_timeout"] = max(2, round(self._timeout))
        try:
            # never prepared: a pooler such as pgbouncer may hand the next transaction to another session
            connection = psycopg.connect(
                self._address, autocommit=True, prepare_threshold=None, application_name="adsh", **wait
            )
        except psycopg.ProgrammingError as problem:
            raise InputError(
                f"{self.name} is no address PostgreSQL knows ({self.told(problem)}): give "
                "postgresql://user:password@host:5432/database?table=NAME, with odd characters as %XX"
            ) from None
        except psycopg.OperationalError as problem:
            raise self._unreachable(self.told(problem)) from None
        try:
            connection.execute(_SETTINGS, [f"{round(self._timeout * 1000)}ms"])
        except psycopg.Error as problem:
            connection.close()
            raise self._explained(problem, True) from None
        return connection

    def _unreachable(self, reason: str) -> ServerError:
        if "password" in reason or "authentication" in reason:
            advice = "check the user and the password in the address, in PGPASSWORD or in ~/.pgpass"
        elif "database" in reason and "does not exist" in reason:
            advice = "make the database first, with createdb, or name another"
        elif "FATAL" in reason:
            advice = "ask who runs the server"
        else:
            advice = "start the server, or correct the address"
        return ServerError(f"cannot connect to {self.name} ({reason}): {advice}")

    def _explained(self, problem: psycopg.Error, lost: bool) -> AdshError:
        reason = self.told(problem)
        if isinstance(problem, codes.LockNotAvailable):
            return BusyError(
                f"{self.name} is being written by another process, and was for {self._timeout:g} s: try again, or "
                "open it with a longer timeout="
            )
        if lost:
            return ServerError(
                f"the connection to {self.name} was lost ({reason}): nothing of a call under way is stored in part; "
                "repeat it, for what is there already is only replaced"
            )
        if isinstance(problem, codes.InsufficientPrivilege):
            return ServerError(f"{self.name} does not allow it ({reason}): ask for the right, or use another user")
        if isinstance(problem, codes.DiskFull):
            return ServerError(f"no space is left on {self.name} ({reason}): nothing of this call was written")
        if isinstance(problem, codes.ReadOnlySqlTransaction):
            return ServerError(f"{self.name} cannot be written ({reason}): give the address of the primary server")
        return ServerError(f"{self.name} refused ({reason}): nothing of this call was written")

    def told(self, problem: BaseException) -> str:
        """The first line of what the server said, without what is secret."""
        reason = " ".join(first_line(problem).split())
        for prefix in ("connection failed: ", "connection to server at "):
            reason = reason.removeprefix(prefix)
        return without_secrets(reason, self._secrets)


def _has_ended(connection: Connection) -> bool:
    """Whether the server ended an idle connection: nothing but its last words can be waiting there."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(connection.fileno(), selectors.EVENT_READ)
        return bool(waiting.select(0))
