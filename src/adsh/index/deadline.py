"""A time limit for the searches of a thread: a long one ends with an error, so that others get their turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from ..errors import InputError, SearchTimeoutError


class _Limit(NamedTuple):
    """When the time is over, by which clock, and how much it was."""

    until: float
    clock: Callable[[], float]
    seconds: float

    def left(self) -> float:
        return self.until - self.clock()


_limit: ContextVar[_Limit | None] = ContextVar("adsh_search_limit", default=None)


@contextmanager
def time_limit(seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Raise SearchTimeoutError in a search of this thread that takes longer than this, counted from here.

        with time_limit(2.0):
            index.search(codes, where={"caption": {"lt": "b"}})

    An index in a folder stops between two blocks of items; one in PostgreSQL asks the server to stop. What was found
    out about the filter is kept, so that the next search with it gets farther. With `clock=time.process_time`, the time
    that other processes take from this one is not counted.
    """
    if not seconds > 0:
        raise InputError(f"seconds={seconds!r}: give a number above 0")
    outer = _limit.get()
    token = _limit.set(_Limit(clock() + seconds, clock, seconds) if outer is None or seconds < outer.left() else outer)
    try:
        yield
    finally:
        _limit.reset(token)


def remaining() -> float | None:
    """Return the seconds that are left, at least 0; None without a limit."""
    limit = _limit.get()
    return None if limit is None else max(0.0, limit.left())


def check_deadline() -> None:
    """Raise SearchTimeoutError if the time limit of this thread is over."""
    limit = _limit.get()
    if limit is not None and limit.left() < 0:
        raise took_too_long()


def took_too_long() -> SearchTimeoutError:
    """Return the error for a search that was stopped."""
    limit = _limit.get()
    seconds = 0.0 if limit is None else limit.seconds
    return SearchTimeoutError(
        f"the search took longer than {seconds:g} s and was stopped: give a filter that more items meet, a filter on a "
        "number or an equal text, or a smaller radius"
    )
