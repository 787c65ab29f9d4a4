"""A disk that is full at any moment of writing to an index or of training.

Files may grow to a random size and no further, as on a full disk. What was acknowledged before is there afterwards, the
error is one line, and the model that was there before is still whole.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.index.kills import acknowledged, applied

import adsh

from ._settings import Settings

_LIMITED = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
_ROOT = Path(__file__).resolve().parents[2]


def run(settings: Settings) -> dict[str, Any]:
    """Fill the disk under a writer of an index, and under a training, in turn."""
    draw, until = random.Random(settings.seed), time.monotonic() + settings.seconds
    figures = {"indexes": 0, "acknowledged calls": 0, "trainings": 0, "trainings refused": 0}
    rng = np.random.default_rng(0)
    np.savez(settings.folder / "x.npz", features=rng.normal(size=(60, 4)).astype(np.float32), labels=np.arange(60) % 3)
    assert not _train(settings.folder, 1 << 40).returncode
    while figures["indexes"] + figures["trainings"] < settings.count and time.monotonic() < until:
        if draw.random() < 0.7:
            figures["indexes"] += 1
            figures["acknowledged calls"] += _index(settings.folder, draw)
        else:
            figures["trainings"] += 1
            figures["trainings refused"] += _training(settings.folder, draw)
    return {"held": True, "lost": 0, **figures}


def _limited(limit: int, *words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", _LIMITED, str(limit), *map(str, words)]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def _index(folder: Path, draw: random.Random) -> int:
    index, log = folder / "index", folder / "log"
    shutil.rmtree(index, ignore_errors=True)
    log.write_text("")
    limit = draw.randrange(1 << 16, 3 << 20)
    done = _limited(limit, "tests.index.killed_writer", index, log, draw.randrange(1 << 20), folder=_ROOT)
    last = (done.stderr.strip().splitlines() or [""])[-1]
    assert done.returncode == 1, done.stderr
    assert last.startswith("adsh.errors.") or "File too large" in last, done.stderr  # the latter: of its own log
    held, pending, calls = acknowledged(log.read_text().splitlines())
    with adsh.open_index(index, bits=48) as opened:
        found = {item.key: item.metadata["v"] for item in opened.items()}
        assert found in (held, applied(held, pending)), "an acknowledged call is lost"
        assert opened.verify() == []
    return calls


def _train(folder: Path, limit: int) -> subprocess.CompletedProcess[str]:
    flags = ("x.npz", "--bits", 8, "--outer", 3, "--checkpoint-every", 1, "--out", "model", "--overwrite",
             "--no-report", "--no-index")  # fmt: skip
    return _limited(limit, "adsh", "train", *flags, folder=folder)


def _training(folder: Path, draw: random.Random) -> int:
    done = _train(folder, draw.choice([0, draw.randrange(200), draw.randrange(20_000), draw.randrange(200_000)]))
    if done.returncode:
        assert done.returncode == 2, (done.returncode, done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
    adsh.load(folder / "model")  # the new one, or the one before
    json.loads((folder / "model" / "config.json").read_text())
    return int(done.returncode != 0)
