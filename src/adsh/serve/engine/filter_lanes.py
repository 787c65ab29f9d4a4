"""Two lanes for searches with a filter, so that cheap ones never wait for expensive ones.

A filter tells by nothing but its time what it costs. So each starts in the quick lane, where it may take a moment; what
it found out until then is kept. One that is not done goes on in the patient lane, in turns that double: the search that
had least time so far is next, and none gets more than its budget. In a service whose index is a folder, each lane is a
process: Python that compares metadata in this one would keep the event loop waiting.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import SearchTimeoutError
from ...index.deadline import time_limit
from ...search.searcher import Searcher, SearchPlan
from .answers import answer_json
from .batcher import Batcher
from .filter_worker import is_unopened, read_answer, to_message
from .problems import Problem
from .workers import Worker, WorkerEndedError

_QUICK_SECONDS = 0.02  # that a search may take in the quick lane
_FACTOR = 2  # by which each turn is longer than the one before
_GRACE = 20.0  # seconds over its turn after which a process that never looks at the clock is ended
_NICE = (1, 10)  # of the two processes; the event loop, which answers everybody, has 0


class Turn(NamedTuple):
    """A search, and how long it may take this time."""

    plan: SearchPlan
    seconds: float


class FilterLanes:
    """Run searches with a filter; `await filter_lanes(plan)` returns the answer as JSON.

    Args:
        searcher: Searches the index.
        capacity: How many may wait or run in each lane.
        seconds: The budget of one search.
    """

    def __init__(self, searcher: Searcher, capacity: int, seconds: float) -> None:
        self._lanes = [_Lane(searcher, nice) for nice in _NICE]
        self.quick, self.patient = (
            Batcher[Turn, bytes](lane.run, what="searches with a filter", max_batch=1, capacity=capacity)
            for lane in self._lanes
        )
        self.seconds = seconds

    def start(self) -> None:
        """Let processes search from now on, where they can open the index."""
        for lane in self._lanes:
            lane.start()

    async def __call__(self, plan: SearchPlan) -> bytes:
        """Run a search and return the answer as JSON."""
        used, seconds = 0.0, min(_QUICK_SECONDS, self.seconds)
        while True:
            lane = self.patient if used else self.quick
            try:
                return await lane(Turn(plan, seconds), order=used)
            except SearchTimeoutError:
                used += seconds
                if used >= self.seconds:
                    raise SearchTimeoutError(
                        f"the search took longer than {self.seconds:g} s and was stopped: give a filter that more "
                        "items meet, or one on a number or an equal text"
                    ) from None
            seconds = min(_FACTOR * seconds, self.seconds - used)

    async def close(self) -> None:
        """Return when everything accepted is answered."""
        await self.quick.close()
        await self.patient.close()
        for lane in self._lanes:
            await asyncio.get_running_loop().run_in_executor(None, lane.close)


class _Lane:
    """Runs turns one by one: in a process of its own once it is started, else in the thread that calls.

    Args:
        searcher: Searches the index.
        nice: How much of a busy machine's time the process leaves to others.
    """

    def __init__(self, searcher: Searcher, nice: int) -> None:
        self._searcher, self._nice = searcher, nice
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._index: dict[str, Any] = {}  # for the process; empty where there is none
        folder = searcher.index.folder
        self._location: dict[str, Any] = {}
        if folder is not None:
            self._location = {"folder": str(folder.resolve()), "storage_id": searcher.index.storage_id()}

    def start(self) -> None:
        """Start the process in the background, and open the index in it."""
        if self._location:
            self._index = self._location
            threading.Thread(target=self.run, args=([],), daemon=True).start()

    def run(self, turns: list[Turn]) -> Sequence[bytes]:
        """Return the answer of each search; without any, only be ready for the next one."""
        with self._lock:
            if not turns:
                self._ask({"seconds": 0.0}, b"")
            return [self._run(*turn) for turn in turns]

    def _run(self, plan: SearchPlan, seconds: float) -> bytes:
        options, payload = to_message(plan)
        # A cheap search on a busy machine is cheap: what it has at first is its own time.
        answer = self._ask({**options, "seconds": seconds, "own_time": seconds <= _QUICK_SECONDS}, payload)
        if answer is None:
            with time_limit(seconds):
                answer = answer_json(self._searcher.index, plan, self._searcher.answer(plan)[0])
        return answer

    def _ask(self, options: dict[str, Any], payload: bytes) -> bytes | None:
        """Return the process's answer; None where there is no process, or it cannot open the index."""
        if not self._index:
            return None
        try:
            worker = self._living_worker()
            header, answer = worker.run("search", {**self._index, **options}, payload, options["seconds"] + _GRACE)
        except WorkerEndedError:
            detail = "the process that searched with this filter ended: try again, or give another filter"
            raise Problem(503, detail, {"Retry-After": "5"}) from None
        except OSError:  # no room for another process
            return None
        if is_unopened(header):
            self._index = {}
            return None
        return read_answer(header, answer)

    def _living_worker(self) -> Worker:
        if self._worker is not None and not self._worker.alive:
            self._worker.close()
            self._worker = None
        if self._worker is None:
            self._worker = Worker(0, self._nice, trusted=True)
        return self._worker

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._worker is not None:
                self._worker.close()
