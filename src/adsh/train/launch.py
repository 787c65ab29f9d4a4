"""`adsh train` on several processes: started here on one host, or by torchrun on any number of hosts.

Each runs the same command, told by RANK, LOCAL_RANK and WORLD_SIZE which one it is. The first writes and speaks. Where
one ends before its time the others cannot go on: they are ended too, and the reason is told.
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

from ..errors import InputError, TrainingError

if TYPE_CHECKING:
    from .distributed import ProcessGroup

PEER_LOST = 3  # the exit status of a process that ends because another one did
_MEETING = "ADSH_MEETING"  # where processes started here find each other
_PATIENCE = 10.0  # seconds that the others have to see that one is gone; those in a GPU's message never do
_STOPPING = 30.0  # seconds that the first has to stop when asked
_SILENCE = timedelta(minutes=30)  # the longest wait for a message, where a host is gone without a word


def is_child() -> bool:
    """Whether this process is one of those that `run` started."""
    return _MEETING in os.environ


def parent_reports() -> bool:
    """Whether the process that started this one tells of a loss: of the first, which has the terminal."""
    return is_child() and os.environ["RANK"] == "0"


def is_restarted() -> bool:
    """Whether torchrun has started this process again, after one was lost."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) > 0


@contextmanager
def joined(device: str) -> Iterator[ProcessGroup]:
    """The processes started with this one, in touch with each other while the block lasts; this one alone if none."""
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
        warnings.simplefilter("ignore")  # the first has the same to note
    if is_child():
        threading.Thread(target=_end_with_parent, daemon=True).start()
    backend = "gloo"
    if device in ("auto", "cuda") and torch.cuda.is_available():
        torch.cuda.set_device(local_gpu())  # before anything else takes room on the first one
        backend = "nccl"
    choose_device(device)  # or tell now that it cannot be used
    store, _, _ = next(iter(rendezvous(os.environ.get(_MEETING, "env://"), rank, size, timeout=_SILENCE)))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = PrefixStore(f"attempt-{attempt}", store)  # a restart must not meet addresses of the processes before
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_SILENCE)
    yield ProcessGroup.current()
    dist.destroy_process_group()  # not after an error: the others may be in the middle of a message


def leave() -> NoReturn:
    """Ends this process at once: it has nothing left to do, and threads of torch's have aborted some on the way out."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def run(arguments: Sequence[str], count: int, how_to_go_on: str) -> int:
    """Runs `adsh` with these arguments in `count` processes of this host; the exit status of the first.

    Raises where another one ended before its time, with its reason. Ctrl-C and requests to stop go to the first.
    """
    with tempfile.TemporaryDirectory(prefix="adsh-") as folder:
        children: list[subprocess.Popen[bytes]] = []
        lost: int | None = None
        ours: list[int] = []
        stops: list[float] = []
        try:
            for rank in range(count):
                children.append(_started(arguments, rank, count, Path(folder)))
            with _passed_on(children[0]) as stops:
                lost = _first_to_fail(children, stops)
                if lost is not None:
                    _wait(children, _PATIENCE)
        finally:
            ours = [rank for rank, child in enumerate(children) if child.poll() is None]
            for child in children:
                child.kill()  # those that still run
                child.wait()
                assert child.stdin is not None
                child.stdin.close()
        status = [child.returncode for child in children]
        if stops and status[0] < 0:
            raise KeyboardInterrupt  # it was stopped before it could say so
        if lost is None or status[0] in (0, 2, 130) or (lost == 0 and 0 < status[0] != PEER_LOST):
            return status[0]  # the first one has said itself what there is to say
        guilty = [rank for rank in (lost, *range(count)) if rank not in ours and status[rank] not in (0, PEER_LOST)]
        rank = (guilty or [lost])[0]
        reason = _reason(status[rank], _words_of(rank, Path(folder)))
        raise TrainingError(f"process {rank + 1} of {count} {reason}; {how_to_go_on}")


def check_count(count: int) -> None:
    """Raises where so many processes cannot be started."""
    if count < 1:
        raise InputError(f"--processes {count}: give 1 or more")
    if count > 1 and "LOCAL_RANK" in os.environ:
        raise InputError(f"--processes {count} under torchrun: it starts the processes, leave --processes out")


def _started(arguments: Sequence[str], rank: int, count: int, folder: Path) -> subprocess.Popen[bytes]:
    """One of them; what it says goes to a file, but for the first."""
    place: dict[str, Any] = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    place[_MEETING] = f"file://{folder / 'meeting'}"
    threads = str(max(1, (os.cpu_count() or 1) // count))
    with open(_words_of(rank, folder), "wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "adsh", *arguments],
            env={"OMP_NUM_THREADS": threads, **os.environ, **{name: str(value) for name, value in place.items()}},
            stdin=subprocess.PIPE,  # closed when this process ends, however it does
            stdout=said if rank else None,
            stderr=said if rank else None,
            start_new_session=True,  # Ctrl-C comes here alone, and is passed on
        )


def _words_of(rank: int, folder: Path) -> Path:
    return folder / f"{rank}.txt"


def _first_to_fail(children: Sequence[subprocess.Popen[bytes]], stops: Sequence[float]) -> int | None:
    """Which one ended first with an error; None where all ended well. Looked at together, a lost one comes last.

    The first one, where it was asked to stop and did not.
    """
    while True:
        if stops and time.monotonic() > stops[0] + _STOPPING:
            return 0
        ended = [(rank, child.poll()) for rank, child in enumerate(children)]
        failed = [(status == PEER_LOST, rank) for rank, status in ended if status not in (None, 0)]
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
def _passed_on(child: subprocess.Popen[bytes]) -> Iterator[list[float]]:
    """Ctrl-C and requests to stop go to this one, whose end ends the others; when that was."""
    when: list[float] = []

    def pass_on(number: int, _: Any) -> None:
        when.append(time.monotonic())
        child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield when
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _reason(status: int, said: Path) -> str:
    if status < 0:
        name = signal.Signals(-status).name
        return f"was killed by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
    lines = [line for line in said.read_text(errors="replace").splitlines() if line.strip()]
    return f"ended with status {status}" + (f": {lines[-1].removeprefix('adsh: ')}" if lines else "")


def _end_with_parent() -> None:
    """Ends this process when the one that started it is gone: nobody would see the end of it."""
    with open(0, "rb", buffering=0, closefd=False) as pipe:  # unbuffered: a lock would be held at this process's end
        pipe.read()
    os._exit(PEER_LOST)
