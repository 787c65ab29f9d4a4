"""SIGKILL of processes that write to an index, in a folder and in PostgreSQL, and of the PostgreSQL server itself.

After each kill the index is opened: every acknowledged call must be there whole, the one under way whole or not at all,
and `verify` clean. Two writers share an index; a kill takes one of them, or both, or all processes of the server.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests import forked
from tests.index import postgres_server
from tests.index.killed_writer import code
from tests.index.kills import ROOT, acknowledged, applied

import adsh

from ._settings import Settings

_WRITERS = 2
_SERVER_EVERY = 25  # rounds: the server dies in one of so many


def run(settings: Settings) -> dict[str, Any]:
    """Kill writers of both kinds of index in turn until the count or the time is reached."""
    figures = {kind: {"kills": 0, "acknowledged calls": 0} for kind in ("folder", "postgres", "postgres server")}
    until = time.monotonic() + settings.seconds
    server = None if postgres_server.missing() else postgres_server.Server("max_connections=50")
    try:
        seed = settings.seed * 1_000_000
        while time.monotonic() < until and sum(one["kills"] for one in figures.values()) < settings.count:
            seed += 1
            kind = "folder" if server is None or seed % 2 else "postgres"
            dies = kind == "postgres" and seed % _SERVER_EVERY == 0
            location = settings.folder / "index" if kind == "folder" else server.uri(query=f"table=t{seed}")
            kills, calls = _round(location, settings.folder, seed, server if dies else None)
            row = figures["postgres server" if dies else kind]
            row["kills"] += kills
            row["acknowledged calls"] += calls
    finally:
        if server is not None:
            server.stop()
    return {"held": True, "lost or wrong": 0, "kills": sum(one["kills"] for one in figures.values()), **figures}


def _round(location: Any, folder: Path, seed: int, server: Any) -> tuple[int, int]:
    """One round of two writers with keys of their own; returns how many were killed, and how many calls returned."""
    draw = random.Random(seed)
    if isinstance(location, Path):
        shutil.rmtree(location, ignore_errors=True)
    adsh.open_index(str(location), bits=48).close()
    logs = [folder / f"{number}.log" for number in range(_WRITERS)]
    writers = [_start(location, log, 2 * seed + number) for number, log in enumerate(logs)]
    try:
        while not all(
            '"done"' in log.read_text() or writer.poll() is not None for log, writer in zip(logs, writers, strict=True)
        ):
            time.sleep(0.002)
        time.sleep(draw.uniform(0.0, 0.15))
        if server is not None:
            server.kill()
            kills = 1
        else:
            kills = _WRITERS if draw.random() < 0.8 else 1
            for writer in writers[:kills]:
                writer.send_signal(signal.SIGKILL)
            if kills < _WRITERS:
                time.sleep(0.03)  # the other one must be able to go on
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
    if server is not None:
        server.start()
    return kills, _check(location, logs)


def _start(location: Any, log: Path, seed: int) -> subprocess.Popen[Any]:
    log.write_text("")
    program = [sys.executable, "-m", "tests.index.killed_writer", str(location), str(log), str(seed), f"{seed} "]
    return forked.Popen(program, cwd=ROOT, stderr=subprocess.DEVNULL)


def _check(location: Any, logs: list[Path]) -> int:
    """Raise if anything is lost, wrong or done in part; return how many calls were acknowledged."""
    with adsh.open_index(str(location)) as index:
        found = {
            item.key: item.metadata["v"] for item in index.items() if item.code == code(item.metadata["v"]).tobytes()
        }
        assert len(found) == len(index), "an item has another code than it was given"
        problems = index.verify()
    assert problems == [], problems
    total = 0
    for log in logs:
        held, pending, calls = acknowledged(log.read_text().splitlines())
        prefix = json.loads(log.read_text().splitlines()[0]).get("prefix", "")
        own = {key: v for key, v in found.items() if key.startswith(prefix)}
        assert own in (held, applied(held, pending)), (
            f"an acknowledged call is lost, or one was done in part: {log.name}"
        )
        total += calls
    return total
