"""Many, unequal and few classes: ADSH as it chooses by itself, with a head of bits, and the methods to compare with.

    ADSH_DATA=data python benchmarks/many_classes.py [caltech cub synthetic …] [--methods adsh …] [--jobs 2]

caltech      100 classes of 31 to 800 items, 8 queries a class         $ADSH_DATA/many/caltech100_lite0_512.npz
cub          200 classes of 41 to 60 items, 8 queries a class          $ADSH_DATA/many/cub200_lite0_512.npz
synthetic    1,000 classes of 50 items, of which 10 are queries        adsh.data.sources.synthetic
unequal      four classes of CIFAR-10, 350 items of one and 20 of each other, each in turn the large one, five draws;
             100 queries a class                                       $ADSH_DATA/cifar10/lite0_512.npy, labels.npy
cifar10      10 equal classes, 5,000 queries                           the same
coco17       17 labels, several an item, 1,000 queries                 $ADSH_DATA/coco17/lite0_512.npy, coco17_128.npz
small-…      1,500 items and 1,000 queries (caltech: 20 of its classes, cub: 30, with 8 queries a class), as of a
             folder of photographs; `adsh-10` stops after 10 outer iterations

`logistic` is a linear classifier of the features in which each class counts the same: it ranks by probabilities, and
has no codes.

Writes results/benchmarks/many_classes.jsonl, a line for each method, data set, length and split, with MAP over queries
and over classes in all three columns; lines that are there are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import adsh
from adsh import methods
from adsh.data.sources.synthetic import class_features
from adsh.evaluate import evaluate_model
from adsh.evaluate.baselines import CLASSIFIER, evaluate_baselines
from adsh.evaluate.metrics import mean_average_precision
from adsh.experiments.measure import code_version

RESULTS = Path(__file__).parents[1] / "results/benchmarks/many_classes.jsonl"
DATA = Path(os.environ.get("ADSH_DATA", "data"))
BITS = {
    "caltech": (16, 32, 48), "cub": (16, 32, 64), "synthetic": (32, 64), "unequal": (12, 48), "cifar10": (12, 48),
    "coco17": (12, 24, 32, 48), "small-caltech": (16, 48), "small-cub": (16, 48), "small-cifar10": (16, 48),
    "small-coco17": (16, 48),
}  # fmt: skip
METHODS = ("adsh", "adsh-bits", "classifier_d", "sdh_d", "logistic")
EARLY = ("adsh-10", "adsh-bits-10")  # stopped after 10 outer iterations
SMALL = 1500  # database items of a small set
CLASSES, ITEMS = 1000, 50  # of the synthetic set
UNEQUAL = (3, 5, 4, 7)  # cat, dog, deer, horse

Features = np.ndarray[Any, np.dtype[np.float32]]
Labels = np.ndarray[Any, np.dtype[np.int64]]
Split = tuple[Features, Labels, np.ndarray[Any, Any], np.ndarray[Any, Any]]  # features, labels, queries, database


Task = tuple[str, int, int, str]  # data, split, bits, method


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=[*BITS], choices=[*BITS, []])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=[*METHODS, *EARLY])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    known = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    done = {tuple(json.loads(line)[key] for key in ("data", "split", "bits", "method")) for line in known}
    tasks = [
        (name, split, bits, method)
        for method in options.methods
        for name in options.data
        for split in range(20 if name == "unequal" else options.seeds)
        for bits in BITS[name]
    ]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for row in pool.map(run, [task for task in tasks if task not in done]):
            print(row, flush=True)
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    rows.sort(key=lambda row: ([*BITS].index(row["data"]), row["bits"], row["method"], row["split"]))
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def run(task: Task) -> dict[str, Any]:
    """Measure one cell, and add its line to the results."""
    name, split, bits, method = task
    torch.set_num_threads(1)  # of several processes
    row = {"data": name, "bits": bits, "method": method, "split": split} | measure(method, bits, draw(name, split))
    row |= {"commit": code_version(), "torch": torch.__version__}
    with RESULTS.open("a", encoding="utf-8") as file:  # one short write: lines of several processes do not mix
        file.write(json.dumps(row) + "\n")
    return row


def measure(method: str, bits: int, split: Split) -> dict[str, Any]:
    """Fit a method and return its figures."""
    features, labels, queries, database = split
    if method == "logistic":
        return logistic(split)
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
    if labels.ndim > 1:  # the tables of several labels have MAP over the first 5,000 too
        columns["learned"]["map_5000"] = round(
            mean_average_precision(
                model.encode(features[queries]),
                model.database_codes_,
                labels[queries],
                labels[database],
                bits=bits,
                k=5000,
            ),
            4,
        )
    codes = len({bytes(code) for code in model.database_codes_})
    return {**columns, "distinct_codes": codes, "seconds": round(seconds, 1), "seed": 0}


def logistic(split: Split) -> dict[str, Any]:
    """Return the figures of a balanced linear classifier on the features."""
    features, labels, queries, database = split
    found = evaluate_baselines(features[queries], features[database], labels[queries], labels[database])
    (linear,) = (baseline for baseline in found if baseline.name == CLASSIFIER)
    columns = {
        name: {"map": round(score.map_expected, 4), "over_classes": round(score.map_classes, 4)}
        for name, score in linear.columns.items()
    }
    return {**columns, "seconds": round(linear.seconds, 1), "seed": 0}


def build(method: str, bits: int) -> Any:
    """Create a method with its defaults; `adsh-bits` is ADSH with a head of bits and eq. (9), whatever the classes."""
    if method.startswith("adsh"):
        recipe: dict[str, Any] = {"head": "bits"} if method.startswith("adsh-bits") else {}
        recipe |= {"outer": 10} if method in EARLY else {}
        return adsh.ADSH(bits, network="mlp", recipe=recipe, seed=0, device="cpu", progress=False)
    return methods.create(
        method, bits=bits, seed=0, **({"device": "cpu", "progress": False} if "class" in method else {})
    )


def draw(name: str, split: int) -> Split:
    """Return a split of a data set."""
    if name.startswith("small-"):
        return small(name.removeprefix("small-"), split)
    if name == "unequal":
        return unequal(*read_cifar10(), UNEQUAL[split % 4], split // 4)
    if name in ("cifar10", "coco17"):
        features, labels = read_cifar10() if name == "cifar10" else read_coco17()
        order = np.random.default_rng([3000, split]).permutation(len(features))
        held_out = 5000 if name == "cifar10" else 1000
        return features, labels, order[:held_out], order[held_out:]
    features, labels = class_features(CLASSES, ITEMS, split) if name == "synthetic" else read_many(name)
    return by_class(features, labels, 10 if name == "synthetic" else 8, np.random.default_rng([1000, split]))


def by_class(features: Features, labels: Labels, queries: int, rng: np.random.Generator) -> Split:
    """Return so many queries of each class, the other items as the database."""
    orders = [rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    chosen = np.concatenate([order[:queries] for order in orders])
    return features, labels, chosen, np.concatenate([order[queries:] for order in orders])


def small(name: str, split: int) -> Split:
    """Return a set of the size of a folder of photographs."""
    rng = np.random.default_rng([4000, split])
    if name in ("cifar10", "coco17"):
        features, labels = read_cifar10() if name == "cifar10" else read_coco17()
        order = rng.permutation(len(features))
        return features, labels, order[:1000], order[1000 : 1000 + SMALL]
    features, labels = read_many(name)
    classes = rng.permutation(np.unique(labels))[: 20 if name == "caltech" else 30]
    kept = rng.permutation(np.flatnonzero(np.isin(labels, classes)))
    kept = kept[: SMALL + 400]  # before queries are drawn: of unequal classes, the shares stay
    return by_class(features[kept], labels[kept], 8, rng)


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


def read_coco17() -> tuple[Features, Labels]:
    """Return the features and the multi-hot labels of coco17."""
    features = np.load(DATA / "coco17/lite0_512.npy").astype(np.float32)
    with np.load(DATA / "coco17/coco17_128.npz") as arrays:
        return features, arrays["Y"].astype(np.int64)


if __name__ == "__main__":
    main()
