"""Runs of several processes: lost ones, stopped ones, and what is left to go on with at any number of processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import adsh as package

from .. import forked
from ..same_weights import assert_same_weights
from .conftest import process

OUTER = 40
SOON = 60  # seconds, on a busy machine; a loss that nobody saw would last half an hour


def train(out: str, *more: object) -> tuple[object, ...]:
    flags = ("--bits", 12, "--samples", 128, "--outer", OUTER, "--checkpoint-every", 1)
    return ("train", "blobs.npz", *flags, "--out", out, *more)


def wait_for(what, seconds: float = SOON):
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)
    return found


def iterations(run: Path) -> int:
    log = run / "log.jsonl"
    return log.read_text().count('"event": "outer"') if log.exists() else 0


def workers(pid: int) -> dict[int, int]:
    """The process of each rank, among those started by this one; a forked one's rank is in which order it came."""
    found = {}
    for at, child in enumerate(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        values = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        rank = next((v for v in values if v.startswith(b"RANK=")), None)
        found[int(rank.removeprefix(b"RANK=")) if rank is not None else at] = int(child)
    return found


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def same_model(one: Path, other: Path) -> None:
    """The codes bit for bit, the weights but for the order of sums."""
    a, b = package.load(one), package.load(other)
    np.testing.assert_array_equal(a.database_codes_, b.database_codes_)
    assert_same_weights(a.network_.state_dict(), b.network_.state_dict())


def test_a_lost_process_ends_the_run_which_goes_on_at_any_number_of_processes(adsh, blob_file):
    folder = blob_file.parent
    assert adsh(*train("whole")).status == 0
    run = process(*train("two", "--processes", 2), folder=folder)
    wait_for(lambda: iterations(folder / "two") >= 3)
    others = workers(run.pid)
    os.kill(others[1], signal.SIGKILL)
    out, err = run.communicate(timeout=SOON)
    assert run.returncode == 2
    assert out == ""
    assert err.count("\n") == 1
    assert "process 2 of 2 was killed by SIGKILL" in err
    assert "adsh train --resume --out two" in err
    assert not any(running(pid) for pid in others.values())
    shutil.copytree(folder / "two", folder / "four")

    assert adsh("train", "--resume", "--out", "two").status == 0
    same_model(folder / "two", folder / "whole")
    more = process("train", "--resume", "--out", "four", "--processes", 4, "--json", folder=folder)
    out, err = more.communicate(timeout=2 * SOON)
    assert (more.returncode, err) == (0, "")
    assert json.loads(out)["outer"] == OUTER
    same_model(folder / "four", folder / "whole")
    events = [json.loads(line) for line in (folder / "four/log.jsonl").read_text().splitlines()]
    assert [e["outer"] for e in events if e["event"] == "outer"] == list(range(1, OUTER + 1))
    assert [e["processes"] for e in events if e["event"] in ("start", "resume")] == [2, 4]


@pytest.mark.parametrize("start", [forked.Popen, pytest.param(subprocess.Popen, marks=pytest.mark.slow)])
def test_a_restart_by_torchrun_goes_on_from_the_last_checkpoint(adsh, blob_file, start):
    folder = blob_file.parent
    assert adsh(*train("whole")).status == 0
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1"]
    launcher += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--monitor-interval", "0.1"]
    arguments = [*launcher, "-m", "adsh", *map(str, train("model"))]
    run = start(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: iterations(folder / "model") >= 3)
    os.kill(workers(run.pid)[1], signal.SIGKILL)
    out, err = run.communicate(timeout=2 * SOON)
    assert run.returncode == 0, err
    assert out.count(f"training  {OUTER} iterations") == 1  # the first alone speaks
    same_model(folder / "model", folder / "whole")
    assert '"event": "resume"' in (folder / "model/log.jsonl").read_text()


def test_a_stopped_run_says_how_to_go_on_and_leaves_no_process(blob_file):
    folder = blob_file.parent
    run = process(*train("model", "--processes", 2), folder=folder)
    wait_for(lambda: iterations(folder / "model"))
    others = workers(run.pid)
    run.terminate()
    _, err = run.communicate(timeout=SOON)
    assert run.returncode == 130
    assert err.count("\n") == 1
    assert "adsh train --resume --out model" in err
    assert not any(running(pid) for pid in others.values())


def test_no_process_outlives_the_one_that_started_it(blob_file):
    run = process(*train("model", "--processes", 2), folder=blob_file.parent)
    wait_for(lambda: iterations(blob_file.parent / "model"))
    others = workers(run.pid)
    run.kill()
    run.communicate(timeout=SOON)
    wait_for(lambda: not any(running(pid) for pid in others.values()))


def test_a_mistake_is_reported_once(blob_file):
    run = process(*train("model", "--processes", 2, "--samples", 1), folder=blob_file.parent)
    out, err = run.communicate(timeout=SOON)
    assert run.returncode == 2
    assert (out, err) == ("", "adsh: 2 processes share 1 sampled points: start no more than 1\n")


def test_counts_that_cannot_be_are_refused(refused, blob_file, monkeypatch):
    assert "give 1 or more" in refused(*train("model", "--processes", 0))
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert "torchrun" in refused(*train("model", "--processes", 2))
