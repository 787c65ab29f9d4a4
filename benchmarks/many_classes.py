"""Many and unequal classes: ADSH as it chooses by itself, as published, and the methods that do not collapse there.

    ADSH_DATA=data python benchmarks/many_classes.py [caltech cub synthetic unequal] [--seeds 3]

caltech      100 classes of 31 to 800 items, 8 queries a class         $ADSH_DATA/many/caltech100_lite0_512.npz
cub          200 classes of 41 to 60 items, 8 queries a class          $ADSH_DATA/many/cub200_lite0_512.npz
synthetic    1,000 classes of 50 items, of which 10 are queries        adsh.data.sources.synthetic
unequal      four classes of CIFAR-10, 350 items of one and 20 of each other, each in turn the large one, five draws;
             100 queries a class                                       $ADSH_DATA/cifar10/lite0_512.npy, labels.npy

Writes results/benchmarks/many_classes.jsonl, a line for each method, data set, length and split, with MAP over queries
and over classes in all three columns; lines that are there are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import adsh
from adsh import methods
from adsh.data.sources.synthetic import class_features
from adsh.evaluate import evaluate_model

RESULTS = Path(__file__).parents[1] / "results/benchmarks/many_classes.jsonl"
DATA = Path(os.environ.get("ADSH_DATA", "data"))
BITS = {"caltech": (16, 32, 48), "cub": (16, 32, 64), "synthetic": (32, 64), "unequal": (12, 48)}
METHODS = ("adsh", "adsh-bits", "classifier_d", "sdh_d")
CLASSES, ITEMS = 1000, 50  # of the synthetic set
UNEQUAL = (3, 5, 4, 7)  # cat, dog, deer, horse

Features = np.ndarray[Any, np.dtype[np.float32]]
Labels = np.ndarray[Any, np.dtype[np.int64]]
Split = tuple[Features, Labels, np.ndarray[Any, Any], np.ndarray[Any, Any]]  # features, labels, queries, database


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=list(BITS), choices=[*BITS, []])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    options = parser.parse_args()
    known = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    done = {tuple(json.loads(line)[key] for key in ("data", "bits", "method", "split")) for line in known}
    for name in options.data:
        for split, drawn in splits(name, options.seeds):
            for bits in BITS[name]:
                for method in options.methods:
                    if (name, bits, method, split) not in done:
                        write(
                            {
                                "data": name,
                                "bits": bits,
                                "method": method,
                                "split": split,
                                **measure(method, bits, drawn),
                            }
                        )


def measure(method: str, bits: int, split: Split) -> dict[str, Any]:
    """Fit a method and return its figures."""
    features, labels, queries, database = split
    started = time.perf_counter()
    model = build(method, bits).fit(features[database], labels[database])
    seconds = time.perf_counter() - started
    evaluation = evaluate_model(
        model, features[queries], labels[queries], features[database], labels[database], cases=0
    )
    columns = {
        name.replace("hashed", "network"): {
            "map": round(c.map_expected, 4),
            "over_classes": round(c.map_classes or 0, 4),
        }
        for name, c in evaluation.columns.items()
    }
    codes = len({bytes(code) for code in model.database_codes_})
    return {**columns, "distinct_codes": codes, "seconds": round(seconds, 1), "seed": 0}


def build(method: str, bits: int) -> Any:
    """Create a method with its defaults; `adsh-bits` is ADSH with a head of bits and eq. (9), whatever the classes."""
    if method.startswith("adsh"):
        recipe = {"head": "bits"} if method == "adsh-bits" else None
        return adsh.ADSH(bits, network="mlp", recipe=recipe, seed=0, device="cpu", progress=False)
    return methods.create(
        method, bits=bits, seed=0, **({"device": "cpu", "progress": False} if "class" in method else {})
    )


def splits(name: str, count: int) -> Iterator[tuple[int, Split]]:
    """Yield the number of each split, and the split."""
    if name == "unequal":
        features, labels = read_cifar10()
        for number in range(4 * 5):
            yield number, unequal(features, labels, UNEQUAL[number % 4], number // 4)
        return
    for seed in range(count):
        features, labels = class_features(CLASSES, ITEMS, seed) if name == "synthetic" else read_many(name)
        queries = 10 if name == "synthetic" else 8
        rng = np.random.default_rng([1000, seed])
        orders = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
        chosen = np.concatenate([order[:queries] for order in orders])
        yield seed, (features, labels, chosen, np.concatenate([order[queries:] for order in orders]))


def unequal(features: Features, labels: Labels, large: int, draw: int) -> Split:
    """Return 350 items of one class and 20 of each other, and 100 queries of each."""
    rng = np.random.default_rng([2000, draw])
    orders = {label: rng.permutation(np.flatnonzero(labels == label)) for label in UNEQUAL}
    database = [order[100 : 450 if label == large else 120] for label, order in orders.items()]
    return features, labels, np.concatenate([o[:100] for o in orders.values()]), np.concatenate(database)


def read_many(name: str) -> tuple[Features, Labels]:
    """Return the features of a file of many classes."""
    with np.load(DATA / f"many/{ {'caltech': 'caltech100', 'cub': 'cub200'}[name] }_lite0_512.npz") as arrays:
        return arrays["features"].astype(np.float32), arrays["labels"].astype(np.int64)


def read_cifar10() -> tuple[Features, Labels]:
    """Return the features of CIFAR-10."""
    features = np.load(DATA / "cifar10/lite0_512.npy", mmap_mode="r").astype(np.float32)
    return features, np.load(DATA / "cifar10/labels.npy").astype(np.int64)


def write(row: dict[str, Any]) -> None:
    """Append a line to the results."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


if __name__ == "__main__":
    main()
