"""Questions of many requests answered together, by one thread beside the event loop.

While the thread works, what comes in gathers and goes with its next turn: one pass through the network, or one call of
the index, for many requests. There is room for so many; more are refused at once instead of waiting for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from ..problems import Problem, too_busy

Q = TypeVar("Q")
A = TypeVar("A")


class Batcher(Generic[Q, A]):
    """`await batcher(question)` gives its answer.

    work    answers some questions, in their order; an exception among the answers is raised to who asked
    what    what the questions are, for people
    most    how many go together
    room    how many may wait or be at work
    wait    seconds to wait for more after the first
    """

    def __init__(
        self,
        work: Callable[[list[Q]], Sequence[A | Exception]],
        *,
        what: str,
        most: int,
        room: int,
        wait: float = 0.0,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self._work, self._what, self._most, self._room, self._wait = work, what, most, room, wait
        self._on_batch = on_batch
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._at_work = 0
        self._pump: asyncio.Task[None] | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"adsh-{what}")

    def __len__(self) -> int:
        return len(self._waiting) + self._at_work

    def __call__(self, question: Q) -> asyncio.Future[A]:
        """The answer to come."""
        if self._closed:
            raise Problem(503, "the server is stopping: try again in a few seconds", {"Retry-After": "5"})
        if len(self) >= self._room:
            raise too_busy(self._what, self._room)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        self._waiting.append((question, future))
        if self._pump is None:
            self._pump = loop.create_task(self._run())
        return future

    async def close(self) -> None:
        """Takes no more, and ends when everything taken is answered."""
        self._closed = True
        if self._pump is not None:
            await self._pump
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            if len(self._waiting) < self._most:
                await asyncio.sleep(self._wait)  # with 0, for those that are being read in this very turn of the loop
            batch: list[tuple[Q, asyncio.Future[A]]] = []
            while self._waiting and len(batch) < self._most:
                question, future = self._waiting.popleft()
                if not future.done():  # else who asked has gone
                    batch.append((question, future))
            if not batch:
                continue
            self._at_work = len(batch)
            answers: Sequence[A | Exception]
            try:
                answers = await loop.run_in_executor(self._thread, self._work, [question for question, _ in batch])
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
        self._pump = None


def one_by_one(jobs: list[Callable[[], A]]) -> list[A | Exception]:
    """What each of some calls gives; one that fails leaves the others alone."""
    answers: list[A | Exception] = []
    for job in jobs:
        try:
            answers.append(job())
        except Exception as problem:
            answers.append(problem)
    return answers
