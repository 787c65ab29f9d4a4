"""A process that does what a hostile request could make endless: decode images, parse large batches, filter metadata.

`workers` starts it. It reads jobs from standard input and writes the results to standard output, ends when the input
is closed, and is ended by the system when a job takes too long or too much memory, whatever code it is in.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import IO, Any

from ...errors import InputError
from .frames import read_frame, write_frame

Job = Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes | memoryview]]

_JOBS = {  # imported at their first use: a process seldom needs both
    "image": (".uploads", "decode_upload"),
    "items": ("..http.item_batch", "parse_batch"),
    "search": (".filter_worker", "search"),
}


def run_jobs(source: IO[bytes], sink: IO[bytes]) -> None:
    """Do one job after the other until the input ends.

    Args:
        source: Jobs: the header has the job's name, its options and the seconds that it may take.
        sink: Results; an InputError is one, under "refused".
    """
    jobs: dict[str, Job] = {}
    write_frame(sink, {"ready": True})
    while (frame := read_frame(source)) is not None:
        header, payload = frame
        name = header["job"]
        if name not in jobs:
            module, function = _JOBS[name]
            jobs[name] = getattr(import_module(module, __package__), function)
        _end_after(header["seconds"])
        try:
            result = jobs[name](header["options"], payload)
        except InputError as problem:
            result = {"refused": str(problem)}, b""
        except MemoryError:
            result = {"refused": "the request takes too much memory: send a smaller one"}, b""
        _end_after(0)
        del frame, payload
        write_frame(sink, *result)
        del result


def _end_after(seconds: float) -> None:
    """Let the system end this process unless it is called again in time; 0 for never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_memory(size: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # not on Windows; not beyond the limit of the system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def main() -> None:
    """Take over standard input and output, and do jobs."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # sent to all processes of the service: this one ends with its input
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    memory, nice = map(int, sys.argv[1:])
    if memory:
        _limit_memory(memory)
    if hasattr(os, "nice"):
        os.nice(nice)
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):  # what a library prints is no result
        os.dup2(nowhere, number)
    with suppress(BrokenPipeError):
        run_jobs(source, sink)
    os._exit(0)


if __name__ == "__main__":
    main()
