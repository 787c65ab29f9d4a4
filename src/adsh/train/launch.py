"""`adsh train` on several processes: started here on one host, or by torchrun on any number of hosts.

Each runs the same command; RANK, LOCAL_RANK and WORLD_SIZE say which one it is. Rank 0 writes files and reports. Where
one process ends early the others cannot go on: they are ended too, and `run` raises an error with the reason, which
`cli/app.py` prints.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import EXIT_MISTAKE, EXIT_PEER_LOST, EXIT_STOPPED, InputError, TrainingError

if TYPE_CHECKING:
    from .distributed import ProcessGroup

_RENDEZVOUS = "ADSH_RENDEZVOUS"  # the environment variable that says where the processes started here find each other
_EXIT_TIMEOUT = 10.0  # seconds the others have to notice that one has ended; those waiting in NCCL never do
_STOP_TIMEOUT = 30.0  # seconds rank 0 has to stop after a signal
_MESSAGE_TIMEOUT = timedelta(minutes=30)  # the longest wait for a message of a host that has vanished


def is_child() -> bool:
    """Return whether `run` started this process."""
    return _RENDEZVOUS in os.environ


def parent_reports() -> bool:
    """Return whether the parent process reports the loss of a process: it does for rank 0, which has the terminal."""
    return is_child() and os.environ["RANK"] == "0"


def is_restarted() -> bool:
    """Return whether torchrun has restarted this process after one was lost."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) > 0


@contextmanager
def connect(device: str) -> Iterator[ProcessGroup]:
    """Connect the processes started with this one while the block lasts; yield this one alone if there are none."""
    from .distributed import ProcessGroup

    rank, size = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    if "LOCAL_RANK" not in os.environ or size == 1:
        yield ProcessGroup()
        return
    import torch
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    from ..utils.device import choose_device
    from .distributed import local_gpu

    if rank:
        warnings.simplefilter("ignore")  # rank 0 shows the same warnings
    if is_child():
        threading.Thread(target=_end_with_parent, daemon=True).start()
    backend = "gloo"
    if device in ("auto", "cuda") and torch.cuda.is_available():
        torch.cuda.set_device(local_gpu())  # before anything allocates memory on the first one
        backend = "nccl"
    choose_device(device)  # raise now if it cannot be used
    store, _, _ = next(iter(rendezvous(os.environ.get(_RENDEZVOUS, "env://"), rank, size, timeout=_MESSAGE_TIMEOUT)))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = PrefixStore(f"attempt-{attempt}", store)  # a restart must not find the addresses of the processes before it
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_MESSAGE_TIMEOUT)
    yield ProcessGroup.current()
    dist.destroy_process_group()  # not after an error: the others may be in the middle of a message


def exit_now() -> NoReturn:
    """End this process at once: nothing is left to do, and threads of torch may abort a normal exit."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def run(arguments: Sequence[str], count: int, how_to_resume: str) -> int:
    """Run `adsh` with these arguments in several processes of this host. Ctrl-C and SIGTERM go to rank 0.

    Args:
        arguments: of the command.
        count: how many processes.
        how_to_resume: added to the message where a process is lost.

    Returns:
        The exit status of rank 0.

    Raises:
        TrainingError: another process ended early; the message says why.
    """
    with tempfile.TemporaryDirectory(prefix="adsh-") as folder:
        children: list[subprocess.Popen[bytes]] = []
        lost: int | None = None
        ended_here: list[int] = []  # ranks that were still running
        stops: list[float] = []
        try:
            for rank in range(count):
                children.append(_start(arguments, rank, count, Path(folder)))
            with _forward_signals(children[0]) as stops:
                lost = _first_to_fail(children, stops)
                if lost is not None:
                    _wait(children, _EXIT_TIMEOUT)
        finally:
            ended_here = [rank for rank, child in enumerate(children) if child.poll() is None]
            for child in children:
                child.kill()  # does nothing to those that have ended
                child.wait()
                assert child.stdin is not None
                child.stdin.close()
        status = [child.returncode for child in children]
        if stops and status[0] < 0:
            raise KeyboardInterrupt  # it was stopped before it could report it
        if lost is None or _rank0_has_reported(status[0], lost):
            return status[0]
        failed = [
            rank for rank in (lost, *range(count)) if rank not in ended_here and status[rank] not in (0, EXIT_PEER_LOST)
        ]
        rank = (failed or [lost])[0]
        reason = _reason(status[rank], _output_of(rank, Path(folder)))
        raise TrainingError(f"process {rank + 1} of {count} {reason}; {how_to_resume}")


def _rank0_has_reported(status: int, lost: int) -> bool:
    """Return whether rank 0 ended well or printed the problem itself, given its status and the rank that was lost."""
    if status in (0, EXIT_MISTAKE, EXIT_STOPPED):
        return True
    return lost == 0 and status > 0 and status != EXIT_PEER_LOST


def check_count(count: int) -> None:
    """Raise where so many processes cannot be started."""
    if count < 1:
        raise InputError(f"--processes {count}: give 1 or more")
    if count > 1 and "LOCAL_RANK" in os.environ:
        raise InputError(f"--processes {count} under torchrun: it starts the processes, leave --processes out")


def _start(arguments: Sequence[str], rank: int, count: int, folder: Path) -> subprocess.Popen[bytes]:
    """Start one process; the output of all but rank 0 goes to a file."""
    variables: dict[str, Any] = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    variables[_RENDEZVOUS] = f"file://{folder / 'meeting'}"
    threads = str(max(1, (os.cpu_count() or 1) // count))
    with open(_output_of(rank, folder), "wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "adsh", *arguments],
            env={"OMP_NUM_THREADS": threads, **os.environ, **{name: str(value) for name, value in variables.items()}},
            stdin=subprocess.PIPE,  # closed when this process ends, in any way
            stdout=output if rank else None,
            stderr=output if rank else None,
            start_new_session=True,  # Ctrl-C reaches this process alone, which forwards it
        )


def _output_of(rank: int, folder: Path) -> Path:
    return folder / f"{rank}.txt"


def _first_to_fail(children: Sequence[subprocess.Popen[bytes]], stops: Sequence[float]) -> int | None:
    """Return the rank that ended first with an error; None where all ended well.

    Of several seen at once, one that ended because a peer was lost counts last. Rank 0 where it did not stop in time.
    """
    while True:
        if stops and time.monotonic() > stops[0] + _STOP_TIMEOUT:
            return 0
        ended = [(rank, child.poll()) for rank, child in enumerate(children)]
        failed = [(status == EXIT_PEER_LOST, rank) for rank, status in ended if status not in (None, 0)]
        if failed:
            return min(failed)[1]
        if all(status == 0 for _, status in ended):
            return None
        time.sleep(0.02)


def _wait(children: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(child.poll() is None for child in children):
        time.sleep(0.02)


@contextmanager
def _forward_signals(child: subprocess.Popen[bytes]) -> Iterator[list[float]]:
    """Forward SIGINT and SIGTERM to this process, whose end ends the others; yield the times of the signals."""
    when: list[float] = []

    def forward(number: int, _: Any) -> None:
        when.append(time.monotonic())
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield when
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _reason(status: int, output: Path) -> str:
    if status < 0:
        name = signal.Signals(-status).name
        return f"was killed by {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    return f"ended with status {status}" + (f": {lines[-1].removeprefix('adsh: ')}" if lines else "")


def _end_with_parent() -> None:
    """End this process when the one that started it has ended."""
    with open(0, "rb", buffering=0, closefd=False) as pipe:  # unbuffered: a buffer's lock would be held at exit
        pipe.read()
    os._exit(EXIT_PEER_LOST)
