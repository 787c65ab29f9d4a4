"""What an update of all codes costs by K, the number of distinct label sets, at one number of points.

    python benchmarks/label_sets.py            K from 10 to 10^5: about two minutes, under 2 GiB a process
    python benchmarks/label_sets.py --small    to 10^4

One label an item: similar points are those of one class, and every sum is by class, O(K c). Several labels an item: the
products with S go over the k x K block of similar label sets, k of them among the m sampled points, O(k K c). Each case
is a process of its own, whose peak memory includes the labels.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import record

import adsh
from adsh.learn import CodeTable

POINTS, BITS, SAMPLES, UPDATES = 10**6, 48, 2000, 5
TAGS, MOST_TAGS = 200, 5  # of all items, and of one
KINDS = {"one": "one label an item", "several": "several labels an item"}


def distinct_sets(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return (count, TAGS) multi-hot label sets of 1 to 5 tags, no two alike; frequent tags are in most of them."""
    found: dict[bytes, np.ndarray] = {}
    weights = 1 / np.arange(1, TAGS + 1)
    while len(found) < count:
        scores = rng.exponential(size=(count, TAGS)) / weights
        ranks = scores.argsort(axis=1)[:, :MOST_TAGS]
        sizes = rng.integers(1, MOST_TAGS + 1, count)
        hot = np.zeros((count, TAGS), dtype=bool)
        for place in range(MOST_TAGS):
            rows = np.flatnonzero(sizes > place)
            hot[rows, ranks[rows, place]] = True
        found |= {row.tobytes(): row for row in hot}
    return np.array(list(found.values())[:count])


def measure(kind: str, sets: int) -> dict:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, sets, POINTS).astype(np.uint32)
    ids[:sets] = np.arange(sets)  # every set has a point
    labels = ids if kind == "one" else adsh.LabelSets(ids, distinct_sets(sets, rng))
    centres = rng.choice([-1.0, 1.0], size=(min(sets, 4096), BITS))
    started = time.perf_counter()
    table = CodeTable(labels, BITS)
    construction = time.perf_counter() - started
    before, products, updates, distinct = record.peak_bytes(), [], [], []
    for _ in range(UPDATES + 1):  # the first warms up
        omega = rng.choice(POINTS, SAMPLES, replace=False)
        outputs = np.tanh(1.5 * centres[ids[omega] % len(centres)] + rng.normal(size=(SAMPLES, BITS)))
        started = time.perf_counter()
        table.gram()
        table.similarity_sums(omega)
        between = time.perf_counter()
        table.update(omega, outputs, 200.0)
        products.append(between - started)
        updates.append(time.perf_counter() - between)
        distinct.append(len(np.unique(ids[omega])))
    peak = record.peak_bytes()
    return {
        "labels": KINDS[kind], "label_sets": sets, "n": POINTS, "sampled_sets": int(np.median(distinct[1:])),
        "construction_s": round(construction, 3), "products_ms": round(1e3 * float(np.median(products[1:])), 2),
        "update_ms": round(1e3 * float(np.median(updates[1:])), 2), "rows": len(table.rows),
        "peak_mib": round(peak / 2**20), "more_in_updates_mib": round((peak - before) / 2**20),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--case", nargs=2, metavar=("KIND", "SETS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(given.case[0], int(given.case[1]))))
        return
    figures: dict = {"bits": BITS, "samples": SAMPLES, "updates": UPDATES, "tags": TAGS, "update": []}
    for kind in KINDS:
        for sets in (10, 100, 1000, 10_000, *([] if given.small else [100_000])):
            command = [sys.executable, __file__, "--case", kind, str(sets)]
            row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            figures["update"].append(row)
            print(
                f"{row['labels']:>22} {sets:>8,} sets: G and SV {row['products_ms']:>9,.1f} ms, update "
                f"{row['update_ms']:>9,.1f} ms, {row['rows']:,} rows, peak {row['peak_mib']:,} MiB",
                flush=True,
            )
    if not given.small:
        print(f"written to {record.write('label_sets', figures).relative_to(record.ROOT)}")


if __name__ == "__main__":
    main()
