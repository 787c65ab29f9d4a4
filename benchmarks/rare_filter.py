"""A filter that few items meet, by this code and by that of an earlier commit, on the same index in the same run.

    python benchmarks/rare_filter.py                 10^6 items, some minutes
    python benchmarks/rare_filter.py 5000000         5 x 10^6 items, about ten minutes, 6 GB of memory, 2 GB of disk

Every filter is new to the process that times it, so nothing is cached. "distinct": 64-bit codes that are nearly all
distinct; "learned": 50 codes that all items share. "without columns": an index whose snapshot an earlier version wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import record

EARLIER = "fbd760b"  # before there were columns of numbers
FILTERS: list[dict[str, Any]] = [
    {"serial": 77},
    {"serial": {"ge": 1234, "lt": 1237}},
    {"weight": {"gt": 0.9999995}},
    {"serial": {"in": [5, 700, 90_000]}},
]
SEARCHES = """
import json, sys, time
import numpy as np
import adsh
index = adsh.open_index(sys.argv[1])
code = np.zeros((1, 8), dtype=np.uint8)
index.search(code, k=10)
figures = []
for where in json.loads(sys.argv[2]):
    start = time.perf_counter()
    [found] = index.search(code, k=10, where=where)
    figures.append([time.perf_counter() - start, found.keys, found.distances.tolist()])
print(json.dumps(figures))
"""


def build(folder: Path, n: int, distinct: bool, source: Path) -> None:
    """Write an index of n items by the code in `source`, with a snapshot of all of them."""
    script = f"""
import numpy as np, adsh
rng = np.random.default_rng(0)
table = rng.integers(0, 256, (50, 8), dtype=np.uint8)
with adsh.open_index({str(folder)!r}, bits=64) as index:
    for start in range(0, {n}, 250_000):
        count = min(250_000, {n} - start)
        codes = rng.integers(0, 256, (count, 8), dtype=np.uint8) if {distinct} else table[rng.integers(0, 50, count)]
        weights = rng.random(count)
        numbers = range(start, start + count)
        serials = [number * 7919 % {n} for number in numbers]
        rows = [{{"class": f"c{{s % 20}}", "serial": s, "weight": w}} for s, w in zip(serials, weights.tolist())]
        index.add([f"item {{number}}" for number in numbers], codes, rows)
    index.compact()
"""
    run(source, script)


def run(source: Path, script: str, *arguments: str) -> str:
    """Return what a script prints that imports adsh from `source`."""
    environment = {**os.environ, "PYTHONPATH": str(source / "src")}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def compare(index: Path, earlier: Path) -> list[dict[str, Any]]:
    """Return the seconds of each filter by both, and how many times faster this code is."""
    old, new = (json.loads(run(source, SEARCHES, str(index), json.dumps(FILTERS))) for source in (earlier, record.ROOT))
    rows = []
    for where, (before, *found), (now, *same) in zip(FILTERS, old, new, strict=True):
        assert found == same, f"{where} finds {same}, not {found}"
        rows.append(
            {
                "where": where,
                "items found": len(found[0]),
                "seconds before": round(before, 3),
                "seconds": round(now, 4),
                "times": round(before / now),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, nargs="?", default=1_000_000)
    n = parser.parse_args().n
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        earlier = Path(name) / "earlier"
        earlier.mkdir()
        archive = subprocess.run(
            ["git", "-C", str(record.ROOT), "archive", EARLIER, "src"], capture_output=True, check=True
        )
        subprocess.run(["tar", "x", "-C", str(earlier)], input=archive.stdout, check=True)
        cases = {"learned": (False, record.ROOT), "distinct": (True, record.ROOT), "without columns": (False, earlier)}
        for case, (distinct, source) in cases.items():
            start = time.perf_counter()
            build(Path(name) / case, n, distinct, source)
            built = time.perf_counter() - start
            figures[case] = {"seconds to build": round(built, 1), "filters": compare(Path(name) / case, earlier)}
            print(n, case, json.dumps(figures[case], indent=1), flush=True)
    file = "rare_filter" if n == 1_000_000 else f"rare_filter_{n}"
    print(record.write(file, {"items": n, "earlier": EARLIER, **figures}, ("numpy",)))


if __name__ == "__main__":
    main()
