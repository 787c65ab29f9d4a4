"""Kill a writing process at a random moment, and compare what is stored with what was reported as durable."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import adsh
from tests import forked
from tests.index.killed_writer import code

ROOT = Path(__file__).resolve().parents[2]


def kill_once(folder, seed):
    """One round; returns how many calls were acknowledged. Raises where anything is lost, wrong or back again."""
    shutil.rmtree(folder, ignore_errors=True)
    log = folder.with_suffix(".log")
    log.write_text("")
    writer = forked.Popen([sys.executable, "-m", "tests.index.killed_writer", folder, log, str(seed)], cwd=ROOT)
    try:
        while "{}" not in log.read_text() and writer.poll() is None:
            time.sleep(0.01)
        time.sleep(random.Random(seed).uniform(0.0, 0.5))
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert writer.returncode == -signal.SIGKILL, "the writer ended by itself"
    held, pending, calls = acknowledged(log.read_text().splitlines())
    with adsh.open_index(folder) as index:
        found = {
            key: metadata["v"] for key, packed, metadata in index.items() if packed == code(metadata["v"]).tobytes()
        }
        assert len(found) == len(index), "an item has another code than it was given"
        after = applied(held, pending)
        assert found in (held, after), "an acknowledged call is lost, or one was done in part"
        assert index.verify() == []
    return calls


def acknowledged(lines):
    """What must be there, the call that was under way, and how many returned."""
    held: dict[str, int] = {}
    pending, calls = {}, 0
    for line in lines:
        try:
            message = json.loads(line)
        except ValueError:  # cut off by the kill: the call had not started
            break
        if message == "done":
            held, pending, calls = applied(held, pending), {}, calls + 1
        else:
            pending = message
    return held, pending, calls


def applied(held, call):
    return {key: v for key, v in {**held, **call.get("add", {})}.items() if key not in call.get("remove", [])}
