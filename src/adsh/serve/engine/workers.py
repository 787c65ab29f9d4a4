"""Processes that do jobs for the service, and are ended when one takes too long. See `worker` for their side."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from ...errors import InputError
from .frames import read_frame, write_frame
from .problems import Problem

_GRACE = 1.0  # seconds after which the service ends a worker that should have ended itself
_START_SECONDS = 60.0  # that a worker may take to start
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "PYTHONHOME")

_NICE = 5  # less of a busy machine's time than the event loop, which answers everybody

Result = tuple[dict[str, Any], bytes]
T = TypeVar("T")


class WorkerEndedError(InputError):
    """A job took too long or too much memory, or ended the process."""


class Worker:
    """One process; used by one thread at a time.

    Args:
        memory: The most bytes of memory that it may map; 0 for any.
        nice: How much of a busy machine's time it leaves to others.
        trusted: Whether it runs no code that a file could take over: then it ends itself, and nobody need watch it.
    """

    def __init__(self, memory: int, nice: int = _NICE, *, trusted: bool = False) -> None:
        self._trusted = trusted
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}  # and so no token
        environment |= {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "adsh.serve.engine.worker", str(memory), str(nice)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the service
        )
        if self._exchange(None, _START_SECONDS) is None:
            raise OSError("a worker process did not start")

    @property
    def alive(self) -> bool:
        """Whether it can take a job."""
        return self._process.poll() is None

    def run(self, job: str, options: dict[str, Any], payload: bytes, seconds: float) -> Result:
        """Do a job.

        Args:
            job: Its name.
            options: What it takes besides the payload.
            payload: What it works on.
            seconds: How long it may take.

        Returns:
            The header and payload of the result.

        Raises:
            InputError: The job was refused, took too long, or ended the worker.
        """
        result = self._exchange(({"job": job, "options": options, "seconds": seconds}, payload), seconds + _GRACE)
        if result is None:
            late = self._process.wait() in (-signal.SIGALRM, -signal.SIGKILL)
            reason = f"took longer than {seconds:g} s or too much memory" if late else "ended the process that read it"
            raise WorkerEndedError(f"the upload {reason}: send a smaller one")
        if "refused" in result[0]:
            raise InputError(result[0]["refused"])
        return result

    def _exchange(self, message: tuple[dict[str, Any], bytes] | None, seconds: float) -> Result | None:
        """Send a message and return the answer; None where the process ended instead, at the latest after `seconds`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = None
        with self._ended_after(seconds), suppress(BrokenPipeError):
            if message is not None:
                write_frame(self._process.stdin, *message)
            answer = read_frame(self._process.stdout)
        if answer is None:
            self.close()
        return answer

    @contextmanager
    def _ended_after(self, seconds: float) -> Iterator[None]:
        """End the process if the block takes longer; a thread for this costs more than a search."""
        if self._trusted:
            yield
            return
        timer = threading.Timer(seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the process and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        if self._process.poll() is None:
            try:
                self._process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class WorkerPool:
    """A few workers, each started when the others are busy, and replaced when it was ended.

    Args:
        size: The most workers.
        memory: The most bytes that each may map; 0 for any.
        seconds: The most that a job may take.
        what: What the jobs are, for the names of threads.
        nice: How much of a busy machine's time they leave to others.
    """

    def __init__(self, size: int, memory: int, seconds: float, what: str, nice: int = _NICE) -> None:
        self._memory, self._seconds, self._nice = memory, seconds, nice
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=f"adsh-{what}")
        self._idle: list[Worker] = []
        self._lock = threading.Lock()

    async def __call__(self, job: str, options: dict[str, Any], payload: bytes) -> Result:
        """Do a job in one of the workers."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.run, job, options, payload)

    def start(self) -> None:
        """Start one worker in the background, so that the first job need not wait for it."""
        self._threads.submit(lambda: self._with_worker(lambda worker: None))

    def run(self, job: str, options: dict[str, Any], payload: bytes) -> Result:
        """Do a job in one of the workers; the calling thread waits for it.

        Args:
            job: Its name.
            options: What it takes besides the payload.
            payload: What it works on.
        """
        return self._with_worker(lambda worker: worker.run(job, options, payload, self._seconds))

    def _with_worker(self, use: Callable[[Worker], T]) -> T:
        worker = self._take()
        try:
            return use(worker)
        finally:
            if worker.alive:
                with self._lock:
                    self._idle.append(worker)
            else:
                worker.close()

    def _take(self) -> Worker:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is not None and not worker.alive:
            worker.close()
            worker = None
        if worker is None:
            try:
                worker = Worker(self._memory, self._nice)
            except OSError as problem:
                detail = "the server cannot start another process at present: try again"
                raise Problem(503, detail, {"Retry-After": "5"}) from problem
        return worker

    def close(self) -> None:
        """Finish the jobs that were accepted, then end the workers."""
        self._threads.shutdown()
        while self._idle:
            self._idle.pop().close()
