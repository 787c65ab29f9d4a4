"""How long each method trains, at 5,000 and at 59,000 points of CIFAR-10's features and 48 bits.

    python benchmarks/methods.py                                # all, about two hours on 2 cores
    python benchmarks/methods.py --methods itq sdh_d --points 59000

Learning the codes, fitting the hash function (the boosted trees, for FastH, LFH and COSDISH) and coding all points are
timed separately; for networks, training is all of it. All points given are learned from, so that a method and its -D
variant take as long, and the latter stands for both. Figures of other methods in results/benchmarks/methods.json stay.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from record import ROOT, peak_bytes, write

import adsh
from adsh.data import open_source, split
from adsh.methods import DEEP, METHODS, create

BITS = 48
DISTINCT = [name for name in METHODS if f"{name}_d" not in METHODS]  # on the same points a plain one takes as long

TWO_STEP = ("fasth", "lfh", "lfh_d", "cosdish", "cosdish_d")
TARGETS = {  # seconds, of what, on 2 cores
    ("itq", 59_000): (60, "fit"),
    ("sdh_d", 59_000): (600, "codes"),
    ("lfh_d", 59_000): (600, "codes"),
    ("cosdish_d", 59_000): (600, "codes"),
    ("fasth", 5000): (1800, "fit"),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["adsh", *DISTINCT])
    parser.add_argument("--points", type=int, nargs="+", default=[5000, 59_000])
    parser.add_argument("--hash-function", default="trees", choices=["trees", "ridge"], help="of those that have one")
    return parser.parse_args()


def measure(name: str, Y: np.ndarray, labels: Any, hash_function: str) -> dict[str, Any]:
    started = time.perf_counter()
    if name == "adsh":
        model: Any = adsh.ADSH(BITS, progress=False).fit(Y, labels)
    else:
        options = {"hash_function": hash_function} if name in TWO_STEP else {}
        model = create(name, bits=BITS, progress=False, **options).fit(Y, labels)
    figures = {"method": name, "hash_function_by": hash_function if name in TWO_STEP else None}
    figures |= {"points": len(Y), "bits": BITS, "fit": time.perf_counter() - started}
    stages = {} if name in ("adsh", *DEEP) else model.seconds_
    figures |= {
        "codes": stages.get("codes"),
        "hash_function": stages.get("hash function"),
        "coding": stages.get("coding"),
    }
    figures = {key: round(value, 3) if isinstance(value, float) else value for key, value in figures.items()}
    target = TARGETS.get((name, len(Y)))
    if target:
        figures["target"] = f"{target[1]} under {target[0]} s: {'met' if figures[target[1]] < target[0] else 'missed'}"
    threads = os.environ.get("OMP_NUM_THREADS", "all")  # of products of matrices; trees take all cores
    return {**figures, "threads": threads, "peak_mb": round(peak_bytes() / 1e6)}


def main() -> None:
    given = arguments()
    dataset = open_source("cifar10")
    X = np.load(Path(os.environ["ADSH_DATA"]) / "cifar10" / "lite0_512.npy").astype(np.float32)
    parts, labels = split(dataset, "59k", 0), dataset.labels
    assert labels is not None
    path = ROOT / "results" / "benchmarks" / "methods.json"
    for points in given.points:
        chosen = parts.database if points == len(parts.database) else parts.training[:: len(parts.training) // points]
        for name in given.methods:
            figure = measure(name, X[chosen], labels.take(chosen), given.hash_function)
            figures = json.loads(path.read_text())["figures"] if path.exists() else []
            key = ("method", "hash_function_by", "points")
            others = [f for f in figures if any(f.get(k) != figure[k] for k in key)]
            write("methods", [*others, figure], ("numpy", "torch", "scipy", "lightgbm"))
            print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
