"""Kills a writing process 200 times at random moments, and flips every byte of a small index in turn.

    python benchmarks/kill.py [kills [step]]      (200 and 1 where none are given; a step of 10 flips every tenth byte)

Kills: after each, the index is opened again: every acknowledged item has to be there with its code, no removed one, the
call that was under way done whole or not at all, and `verify` clean. Flips: an index as a killed process leaves it,
and one that was closed, with one byte changed in one of its files: an error in one line, or the right answer. The first
failure ends the run.
Writes results/benchmarks/kill.json.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import record

sys.path.insert(0, str(record.ROOT))

from tests.index.damage import killed_index, opened_contents
from tests.index.kills import kill_once

import adsh


def flips(folder, step):
    killed, right = killed_index(folder)
    closed = killed.with_name("index")  # the same one, ended as it should be
    return {"killed": flips_of(killed, right, step), "closed": flips_of(closed, right, step)}


def flips_of(killed, right, step):
    figures = {}
    for path in sorted(killed.iterdir()):
        data = path.read_bytes()
        draw = random.Random(path.name)
        outcomes = {"bytes": len(data), "flipped": 0, "right": 0, "error": 0}
        for at in range(0, len(data), step):
            copy = killed.with_name("copy")
            shutil.copytree(killed, copy)
            changed = bytearray(data)
            changed[at] ^= draw.randrange(1, 256)
            (copy / path.name).write_bytes(changed)
            outcomes["flipped"] += 1
            try:
                found = opened_contents(copy)
            except adsh.AdshError as problem:
                outcomes["error"] += len(str(problem).splitlines())
            else:
                assert found == right, f"byte {at} of {path.name}: a wrong answer"
                outcomes["right"] += 1
            shutil.rmtree(copy)
        assert outcomes["right"] + outcomes["error"] == outcomes["flipped"], "an error takes more than a line"
        name = "snapshot" if path.name.startswith("snapshot") else path.name
        figures[name] = outcomes
        print(killed.name, name, outcomes, flush=True)
    return figures


def main(kills, step):
    started = time.time()
    calls = []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for seed in range(1000, 1000 + kills):
            calls.append(kill_once(Path(folder) / "index", seed))
            if len(calls) % 20 == 0:
                print(f"{len(calls)} kills, {sum(calls)} acknowledged calls, nothing lost", flush=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        flipped = flips(Path(folder), step)
    figures = {
        "kills": kills,
        "acknowledged_calls": sum(calls),
        "lost_or_wrong": 0,
        "flips": flipped,
        "wrong_answers_or_crashes": 0,
        "seconds": time.time() - started,
    }
    print(f"written to {record.write('kill', figures, ('numpy',)).relative_to(record.ROOT)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
