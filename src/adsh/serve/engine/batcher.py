"""Answer the queries of many requests together, in one thread next to the event loop.

While the thread works, new queries gather for its next turn: one pass through the network, or one call of the index,
for many requests. The queue has a limit; what exceeds it is refused at once instead of waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from .problems import Problem, too_busy

Q = TypeVar("Q")
A = TypeVar("A")


class Batcher(Generic[Q, A]):
    """A queue of queries; `await batcher(query)` returns the answer.

    Args:
        work: Answers a batch of queries, in their order; an exception among the answers is raised to its caller.
        what: What the queries are, for messages.
        max_batch: How many are answered together.
        capacity: How many may wait or be at work.
        wait: Seconds to wait for more after the first.
        on_batch: Called with the size of each batch.
    """

    def __init__(
        self,
        work: Callable[[list[Q]], Sequence[A | Exception]],
        *,
        what: str,
        max_batch: int,
        capacity: int,
        wait: float = 0.0,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self._work, self._what, self._max_batch, self._capacity, self._wait = work, what, max_batch, capacity, wait
        self._on_batch = on_batch
        self._waiting: list[tuple[float, int, Q, asyncio.Future[A]]] = []  # a heap
        self._numbers = count()  # those of one order are answered as they came
        self._at_work = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"adsh-{what}")

    def __len__(self) -> int:
        return len(self._waiting) + self._at_work

    def __call__(self, query: Q, order: float = 0.0) -> asyncio.Future[A]:
        """Queue a query before those of a higher order, and return the future of its answer."""
        if self._closed:
            raise Problem(503, "the server is stopping: try again in a few seconds", {"Retry-After": "5"})
        if len(self) >= self._capacity:
            raise too_busy(self._what, self._capacity)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        heappush(self._waiting, (order, next(self._numbers), query, future))
        if self._task is None:
            self._task = loop.create_task(self._run())
        return future

    async def close(self) -> None:
        """Accept no more, and return when everything accepted is answered."""
        self._closed = True
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            if len(self._waiting) < self._max_batch:
                await asyncio.sleep(self._wait)  # with 0, for those that are being read in this very turn of the loop
            batch: list[tuple[Q, asyncio.Future[A]]] = []
            while self._waiting and len(batch) < self._max_batch:
                _, _, query, future = heappop(self._waiting)
                if not future.done():  # else the client has left
                    batch.append((query, future))
            if not batch:
                continue
            self._at_work = len(batch)
            answers: Sequence[A | Exception]
            try:
                answers = await loop.run_in_executor(self._thread, self._work, [query for query, _ in batch])
            except Exception as problem:
                answers = [problem] * len(batch)
            self._at_work = 0
            if self._on_batch is not None:
                self._on_batch(len(batch))
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        self._task = None


def call_each(jobs: list[Callable[[], A]]) -> list[A | Exception]:
    """Return what each call returns or raises; one that fails leaves the others alone."""
    answers: list[A | Exception] = []
    for job in jobs:
        try:
            answers.append(job())
        except Exception as problem:
            answers.append(problem)
    return answers
