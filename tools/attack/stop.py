"""SIGTERM in the middle of hostile requests: the service ends within its bound, whole, and leaves no process."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import adsh

from . import bodies, images
from ._server import Server, children, create
from ._settings import Settings
from ._under_load import exchange

_STOP, _MAX_ROUNDS, _SENDERS = 4.0, 100, 12


def run(settings: Settings) -> dict[str, Any]:
    """Start, attack and stop the service again and again."""
    model, index = create(settings.folder)
    rng = random.Random(settings.seed)
    times, left, sent, until = [], 0, 0, time.monotonic() + settings.seconds
    while len(times) < min(settings.count, _MAX_ROUNDS) and (not times or time.monotonic() < until):
        with (settings.folder / "log.jsonl").open("wb") as log:
            server = Server(model, index, "--stop-seconds", str(_STOP), log=log)
            flood = _Flood(server.port, rng.getrandbits(32))
            flood.start()
            time.sleep(rng.uniform(0.2, 3.0))
            workers = children(server.process.pid)
            times.append(server.stop(signal.SIGTERM, seconds=60))
            sent += flood.finish()
        time.sleep(0.5)
        left += sum(_runs(pid) for pid in workers)
    with adsh.open_index(index) as opened:
        problems = opened.verify()
    return {
        "held": max(times) <= _STOP + 0.25 and not left and not problems,
        "stops": len(times),
        "bound_seconds": _STOP,
        "longest_seconds": round(max(times), 2),
        "median_seconds": round(sorted(times)[len(times) // 2], 2),
        "hostile_requests": sent,
        "processes_left": left,
        "index_problems": problems,
    }


class _Flood(threading.Thread):
    """Hostile requests from a few connections at a time, until it is finished."""

    def __init__(self, port: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._port, self._seed, self._sent, self._ended = port, seed, 0, False

    def run(self) -> None:
        """Send until `finish`."""
        asyncio.run(self._all())

    def finish(self) -> int:
        """Stop; return how many were sent."""
        self._ended = True
        self.join(30)
        return self._sent

    async def _all(self) -> None:
        await asyncio.gather(*map(self._one, range(_SENDERS)))

    async def _one(self, number: int) -> None:
        rng = random.Random(self._seed + number)
        while not self._ended:
            draw = images.draw if rng.random() < 0.7 else bodies.draw
            self._sent += 1
            if await exchange(self._port, draw(rng), timeout=10.0) == "ConnectionRefusedError":
                return


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
