"""Reading by several threads at once. What comes out does not depend on how many there are.

Threads, not processes: Pillow decodes and resizes without holding Python's lock, so threads read as fast, start at
once, and hand over arrays without copying them (`benchmarks/feed.py` has the figures).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ..errors import InputError

Task = TypeVar("Task")
Result = TypeVar("Result")

_MOST = 32  # threads unless asked for more: beyond it they wait for one another
_AHEAD = 2  # tasks a worker that may wait for being taken: memory is bounded by it


def worker_count(wanted: int | None) -> int:
    """How many threads to read with: `wanted`, or with None one a core that this process may use."""
    if wanted is None:
        return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, _MOST)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 0:
        raise InputError(f"workers={wanted!r}: give a number of threads, or 0 to read in the main one")
    return wanted


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Generator[Result, None, None]:
    """`work` of each task, in the order of the tasks, done by so many threads; by the caller's where it is 0.

    An error of a task comes out in its place. However this ends, no thread outlives it.
    """
    if not workers:
        yield from map(work, tasks)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="adsh-read") as pool:
        try:
            for task in tasks:
                waiting.append(pool.submit(work, task))
                if len(waiting) > _AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
