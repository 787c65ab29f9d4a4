"""Clocks that are days ahead or behind, and that jump: processes that share an index and never agree on the time."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.index.kills import ROOT, acknowledged, applied

import adsh

from ._settings import Settings

_SHIFTED = """
import os, random, runpy, sys, time
real, offset, draw = time.time, float(sys.argv[1]), random.Random(sys.argv[1])
def shifted():
    jump = draw.choice([0.0] * 9 + [draw.uniform(-30, 30) * 86_400])
    return real() + offset + jump
time.time = shifted
time.time_ns = lambda: int(shifted() * 1e9)
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def run(settings: Settings) -> dict[str, Any]:
    """Let three writers with clocks of their own share an index, kill them, and look for what they stored."""
    draw, until = random.Random(settings.seed), time.monotonic() + settings.seconds
    figures = {"rounds": 0, "acknowledged calls": 0, "snapshots rebuilt": 0}
    while figures["rounds"] < settings.count and time.monotonic() < until:
        figures["rounds"] += 1
        calls, rebuilt = _round(settings.folder, draw)
        figures["acknowledged calls"] += calls
        figures["snapshots rebuilt"] += rebuilt
    return {"held": figures["snapshots rebuilt"] == 0, "lost": 0, **figures}


def _round(folder: Path, draw: random.Random) -> tuple[int, int]:
    index = folder / "index"
    shutil.rmtree(index, ignore_errors=True)
    adsh.open_index(index, bits=48).close()
    logs, writers = [folder / f"{number}.log" for number in range(3)], []
    for number, log in enumerate(logs):
        log.write_text("")
        days = draw.choice([-400, -3, 0, 3, 400])
        words = ("tests.index.killed_writer", index, log, draw.randrange(1 << 20), f"{number} ")
        program = [sys.executable, "-c", _SHIFTED, str(days * 86_400), *map(str, words)]
        writers.append(subprocess.Popen(program, cwd=ROOT, stderr=subprocess.PIPE, text=True))
    time.sleep(draw.uniform(2.0, 4.0))
    warned = 0
    for writer in writers:
        assert writer.poll() is None, writer.communicate()[1]
        writer.send_signal(signal.SIGKILL)
        warned += writer.communicate()[1].count("rebuilt")
    with adsh.open_index(index) as opened:
        found = {item.key: item.metadata["v"] for item in opened.items()}
        assert opened.verify() == []
    total = 0
    for number, log in enumerate(logs):
        held, pending, calls = acknowledged(log.read_text().splitlines())
        own = {key: v for key, v in found.items() if key.startswith(f"{number} ")}
        assert own in (held, applied(held, pending)), f"an acknowledged call of writer {number} is lost"
        total += calls
    return total, warned
