"""Errors of a request, with the HTTP status that they are answered with."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import BusyError, InputError, first_line


class Problem(Exception):
    """A request that is answered with an error.

    Args:
        status: The HTTP status.
        detail: What is wrong, in one sentence.
        headers: Headers of the answer, such as Retry-After.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
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
    if isinstance(error, BusyError):
        return Problem(503, "another process keeps writing to the index: try again", {"Retry-After": "5"})
    return None
