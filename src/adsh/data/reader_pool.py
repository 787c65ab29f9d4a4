"""Read with several threads at once. The results do not depend on how many there are.

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

_MOST = 32  # threads unless more are requested: beyond it they wait for one another
_AHEAD = 2  # finished tasks a worker may be ahead of the caller, which bounds the memory


def worker_count(workers: int | None) -> int:
    """Return how many threads to read with: `workers`, or with None one a core that this process may use."""
    if workers is None:
        return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, _MOST)
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise InputError(f"workers={workers!r}: give a number of threads, or 0 to read in the main one")
    return workers


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Generator[Result, None, None]:
    """Yield the result of each task, in the order of the tasks.

    An error of a task is raised in its place. However this ends, no thread outlives it.

    Args:
        work: called with each task.
        tasks: read as they are needed.
        workers: threads that work; 0 for the calling thread alone.

    Yields:
        What `work` returned for each task.
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
