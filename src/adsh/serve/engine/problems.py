"""Errors of a request, with the HTTP status that they are answered with."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping

from ...errors import BusyError, InputError, SearchTimeoutError, ServerError, first_line


class Problem(Exception):
    """A request that is answered with an error.

    Args:
        status: The HTTP status.
        detail: What is wrong, in one sentence.
        headers: Headers of the answer, such as Retry-After.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        detail = " ".join(detail.splitlines())  # whatever it quotes
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def too_busy(what: str, limit: int) -> Problem:
    """Return the problem of a request that finds its queue full."""
    return Problem(429, f"{limit:,} {what} are waiting already: try again in a second", {"Retry-After": "1"})


def too_large(max_size: int) -> Problem:
    """Return the problem of a body of more than so many bytes."""
    return Problem(
        413,
        f"the request has more than {max_size:,} bytes: send a smaller one, or less at a time",
        {"Connection": "close"},
    )


def as_problem(error: Exception) -> Problem | None:
    """Return an error of the library as the client may see it; None for an internal error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, InputError):
        return Problem(422, first_line(error))
    if isinstance(error, SearchTimeoutError):
        return Problem(503, first_line(error))
    if isinstance(error, BusyError):
        return Problem(503, "another process keeps writing to the index: try again", {"Retry-After": "5"})
    if _is_disk_full(error):
        return Problem(507, "the server's disk is full, and nothing was stored: free space there, then try again")
    if isinstance(error, ServerError):
        return Problem(503, "the database of the index cannot be used at present: try again", {"Retry-After": "5"})
    return None


def _is_disk_full(error: BaseException | None) -> bool:
    """Return whether a full disk is the reason of an error, or of one that it was raised from."""
    while error is not None:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        if full or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "no space is left" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
