"""Two of everything at once: creators, writers and compactions of one index, and trainings into one folder."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import adsh

from ._settings import Settings

_ROOT = Path(__file__).resolve().parents[2]
_BUSY = """
import random, sys, warnings
import numpy as np
import adsh
from adsh.index.embedded import index as embedded
embedded._REWRITE_FROM, embedded._CLOSE_FROM = 200, 20
folder, seed, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
index = adsh.open_index(folder, bits=48, timeout=60)
for step in range(steps):
    numbers = [seed * 1_000_000 + step * 10 + i for i in range(10)]
    codes = np.random.default_rng(numbers).integers(0, 256, (10, 6), dtype=np.uint8)
    index.add([f"key {n}" for n in numbers], codes, [{"n": n} for n in numbers])
    kind = draw.randrange(8)
    if kind == 0:
        index.compact()
    elif kind == 1:
        index.close()
        index = adsh.open_index(folder, timeout=60)
    elif kind == 2:
        [found] = index.search(codes[:1], k=1, where={"n": numbers[0]})
        assert found.keys == [f"key {numbers[0]}"], found.keys
index.close()
"""
_STEPS = 60


def run(settings: Settings) -> dict[str, Any]:
    """Run pairs of processes on one index, and pairs of trainings into one folder, in turn."""
    draw, until = random.Random(settings.seed), time.monotonic() + settings.seconds
    figures = {"pairs on an index": 0, "items": 0, "pairs of trainings": 0, "refused": 0}
    rng = np.random.default_rng(0)
    np.savez(settings.folder / "x.npz", features=rng.normal(size=(60, 4)).astype(np.float32), labels=np.arange(60) % 3)
    while figures["pairs on an index"] + figures["pairs of trainings"] < settings.count and time.monotonic() < until:
        if draw.random() < 0.7:
            figures["pairs on an index"] += 1
            figures["items"] += _index(settings.folder / f"index {figures['pairs on an index']}", draw)
        else:
            figures["pairs of trainings"] += 1
            figures["refused"] += _trainings(settings.folder, figures["pairs of trainings"])
    return {"held": True, "lost": 0, **figures}


def _both(programs: list[list[str]], folder: Path) -> list[tuple[int, str]]:
    started = [
        subprocess.Popen(one, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for one in programs
    ]
    said = [process.communicate(timeout=300)[1] for process in started]
    return [(process.returncode, one) for process, one in zip(started, said, strict=True)]


def _index(folder: Path, draw: random.Random) -> int:
    seeds = draw.sample(range(1000), 2)
    ended = _both([[sys.executable, "-c", _BUSY, str(folder), str(seed), str(_STEPS)] for seed in seeds], _ROOT)
    assert [status for status, _ in ended] == [0, 0], ended
    with adsh.open_index(folder) as index:
        assert index.verify() == []
        assert sorted(index.keys()) == sorted(
            f"key {seed * 1_000_000 + n}" for seed in seeds for n in range(_STEPS * 10)
        )
        return len(index)


def _trainings(folder: Path, number: int) -> int:
    flags = ["train", "x.npz", "--bits", "8", "--outer", "30", "--out", f"model {number}", "--no-report", "--no-index"]
    ended = _both([[sys.executable, "-m", "adsh", *flags, "--seed", seed] for seed in "12"], folder)
    assert min(status for status, _ in ended) == 0, ended
    for status, said in ended:
        assert status in (0, 2), ended
        assert "Traceback" not in said, said
        if status:
            assert "another adsh train is writing" in said or "holds a trained model" in said, said
    assert sum(status == 0 for status, _ in ended) == 1, ended
    adsh.load(folder / f"model {number}")
    return 1
