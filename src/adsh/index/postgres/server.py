"""A pool of connections to a PostgreSQL server, and its errors in plain words."""

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
from ..deadline import remaining, took_too_long

Connection = psycopg.Connection[tuple[Any, ...]]

# A commit is durable when it returns, whatever the server's default; plans are small, so compiling them does not pay.
_SETTINGS = """
SELECT set_config('lock_timeout', %s, false), set_config('jit', 'off', false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                                        ELSE current_setting('synchronous_commit') END, false)
"""


class Server:
    """A server at an address. Each thread that uses it has a connection of its own meanwhile.

    Args:
        address: with user and password.
        shown_as: what messages call it, without the password.
        timeout: how many seconds to wait for it, and for the lock of another session.
    """

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
        """Yield a connection in a transaction that sees one state of the database and changes nothing."""
        with self._borrowed() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            seconds = remaining()
            if seconds is not None:
                connection.execute("SELECT set_config('statement_timeout', %s, true)", [f"{1 + round(seconds * 1000)}"])
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection in a transaction: durable when the block ends, rolled back on an error.

        Each statement sees what was committed before it, whatever the server's default: a writer that waited for the
        lock of an index must see what the one before it wrote.
        """
        with self._borrowed() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            yield connection

    @contextmanager
    def plain(self) -> Iterator[Connection]:
        """Yield a connection outside any transaction, for statements that PostgreSQL allows only there."""
        with self._borrowed() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed, idle = True, self._idle
            self._idle = []
        for connection in idle:
            connection.close()

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
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
            if lost:  # the idle connections were lost with it
                with self._lock:
                    idle, self._idle = self._idle, []
                for other in idle:
                    other.close()
            raise self._translated(problem, lost) from None
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
                f"{self.name} is no address PostgreSQL knows ({self.reason(problem)}): give "
                "postgresql://user:password@host:5432/database?table=NAME, with odd characters as %XX"
            ) from None
        except psycopg.OperationalError as problem:
            raise self._unreachable(self.reason(problem)) from None
        try:
            connection.execute(_SETTINGS, [f"{round(self._timeout * 1000)}ms"])
        except psycopg.Error as problem:
            connection.close()
            raise self._translated(problem, True) from None
        return connection

    def _unreachable(self, reason: str) -> ServerError:
        if "password" in reason or "authentication" in reason:
            advice = "check the user and the password in the address, in PGPASSWORD or in ~/.pgpass"
        elif "database" in reason and "does not exist" in reason:
            advice = "create the database first, with createdb, or name another"
        elif "FATAL" in reason:
            advice = "ask who runs the server"
        else:
            advice = "start the server, or correct the address"
        return ServerError(f"cannot connect to {self.name} ({reason}): {advice}")

    def _translated(self, problem: psycopg.Error, lost: bool) -> AdshError:
        reason = self.reason(problem)
        if isinstance(problem, codes.LockNotAvailable):
            return BusyError(
                f"{self.name} is being written by another process, and was for {self._timeout:g} s: try again, or "
                "open it with a longer timeout="
            )
        if isinstance(problem, codes.QueryCanceled) and remaining() == 0:
            return took_too_long()
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

    def reason(self, problem: BaseException) -> str:
        """Return the first line of the server's message, without passwords."""
        reason = " ".join(first_line(problem).split())
        for prefix in ("connection failed: ", "connection to server at "):
            reason = reason.removeprefix(prefix)
        return without_secrets(reason, self._secrets)


def _has_ended(connection: Connection) -> bool:
    """Whether the server closed an idle connection: nothing else can be waiting to be read there."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(connection.fileno(), selectors.EVENT_READ)
        return bool(waiting.select(0))
