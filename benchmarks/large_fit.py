"""A whole fit of 10,000 classes and 10^7 points of 64 float32 features that are mapped from disk: time and memory.

    python benchmarks/large_fit.py [--points 10000000] [--classes 10000] [--bits 64]    2.6 GB on disk

Class means are standard normal in 64 dimensions, items are their class's mean + 1.5 x standard normal. Another process
writes the file, so that the peak is that of the fit alone: once of its own memory, and once with the pages of the file
that are mapped, which the system may drop. 2,000 new items of the same classes are the queries; new items are searched
among 20,000 of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import record

import adsh
from adsh.evaluate.metrics import mean_average_precision

DIMENSIONS, NOISE, BLOCK = 64, 1.5, 1 << 18
QUERIES, NEW = 2000, 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10**7)
    parser.add_argument("--classes", type=int, default=10**4)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="where the file of features goes; a temporary folder by default")
    parser.add_argument("--step", choices=["write", "fit"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step == "write":
        write(given.folder, given.points, given.classes)
    elif given.step == "fit":
        print(json.dumps(fit(given.folder, given.classes, given.bits)))
    else:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            options = ["--points", given.points, "--classes", given.classes, "--bits", given.bits, "--folder", folder]
            for step in ("write", "fit"):
                command = [sys.executable, __file__, *map(str, options), "--step", step]
                printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        figures = json.loads(printed.splitlines()[-1])
        print(json.dumps(figures, indent=1))
        if given.points == 10**7:
            print(f"written to {record.write('large_fit', figures).relative_to(record.ROOT)}")


def means_of(classes: int) -> np.ndarray[Any, Any]:
    """Return (K, d) the means of the classes."""
    return np.random.default_rng(0).standard_normal((classes, DIMENSIONS), dtype=np.float32)


def items(labels: np.ndarray[Any, Any], means: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return an item for each label."""
    noise = rng.standard_normal((len(labels), DIMENSIONS), dtype=np.float32)
    drawn: np.ndarray[Any, Any] = means[labels] + np.float32(NOISE) * noise
    return drawn


def write(folder: Path, points: int, classes: int) -> None:
    """Write features.npy and labels.npy."""
    rng, means = np.random.default_rng(1), means_of(classes)
    labels = rng.integers(0, classes, points)
    np.save(folder / "labels.npy", labels.astype(np.uint16))
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (points, DIMENSIONS))
    for start in range(0, points, BLOCK):
        features[start : start + BLOCK] = items(labels[start : start + BLOCK], means, rng)


def fit(folder: Path, classes: int, bits: int) -> dict[str, Any]:
    """Fit, save and encode, and return the figures."""
    features = np.load(folder / "features.npy", mmap_mode="r")
    labels = np.load(folder / "labels.npy")
    watch = PeakOfOwnMemory()
    started = time.perf_counter()
    model = adsh.ADSH(bits, network="mlp", device="cpu", seed=0, progress=False).fit(features, labels)
    seconds = time.perf_counter() - started
    model.save(folder / "model")
    saved = time.perf_counter() - started - seconds
    own, with_file = watch.stop(), record.peak_bytes()
    rng, means = np.random.default_rng(2), means_of(classes)
    truth = rng.integers(0, classes, NEW)
    codes = model.encode(items(truth, means, rng))
    some = rng.choice(len(labels), 200_000, replace=False)
    queries = (codes[:QUERIES], truth[:QUERIES])
    ranked = {"learned": (model.database_codes_[some], labels[some]), "new": (codes[QUERIES:], truth[QUERIES:])}
    return {
        "points": len(labels), "classes": classes, "bits": bits, "head": model.recipe_.head,
        "fit_seconds": round(seconds, 1), "save_seconds": round(saved, 1),
        "peak_gib": round(own / 2**30, 2), "peak_with_mapped_file_gib": round(with_file / 2**30, 2),
        "distinct_codes": model.num_distinct_codes,
        "map": {
            name: round(mean_average_precision(queries[0], them, queries[1], theirs, bits=bits), 4)
            for name, (them, theirs) in ranked.items()
        },
        "map_of": "learned: a sample of 200,000 database items",
    }  # fmt: skip


class PeakOfOwnMemory:
    """The most memory of this process without pages of files, looked at ten times a second."""

    def __init__(self) -> None:
        self._most, self._done = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            with open("/proc/self/status") as status:
                own = next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))
            self._most = max(self._most, own)

    def stop(self) -> int:
        """Return the peak in bytes."""
        self._done.set()
        self._thread.join()
        return self._most


if __name__ == "__main__":
    main()
