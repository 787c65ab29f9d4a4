"""What people would do instead: float vectors, product quantisation and a linear classifier, on the same features.

    ADSH_DATA=data python benchmarks/alternatives.py      three splits of CIFAR-10, about five minutes on two cores

512 features of EfficientNet-Lite0 of every image; 59,000 database items, 1,000 queries that no training saw. For each
way: MAP of the queries over the database as it is stored, the precision among the ten nearest, the bytes an item takes,
and the milliseconds of one query for its nearest 100 on one thread, without encoding the query (`faiss.IndexFlatIP`,
`faiss.IndexPQ`, an index of adsh in a folder). Product quantisation learns its centres from the database, without
labels. The classifier ranks the labelled items by the probability that it gives their label: it has no search.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import faiss
import numpy as np
import record

import adsh
from adsh.data import open_source, split
from adsh.data.sources.registry import source_root
from adsh.evaluate import evaluate_model
from adsh.methods.solvers.logistic import fit_logistic

BITS, NEAREST, SPLITS = 48, 10, 3
SUBVECTORS = (8, 64)  # bytes of a product quantiser
TIMED, K = 200, 100  # queries, and how many items each asks for

Floats = np.ndarray[Any, np.dtype[np.float32]]
Labels = np.ndarray[Any, np.dtype[np.int64]]


def main() -> None:
    dataset = open_source("cifar10")
    features = np.load(source_root("cifar10") / "lite0_512.npy").astype(np.float32)
    labels = np.asarray(dataset.labels.ids).astype(np.int64)
    runs = []
    for seed in range(SPLITS):
        parts = split(dataset, "59k", seed)
        sides = features[parts.queries], labels[parts.queries], features[parts.database], labels[parts.database]
        runs.append(measure(*sides, seed))
        print(runs[-1], flush=True)
    means = {way: {figure: mean([run[way][figure] for run in runs]) for figure in runs[0][way]} for way in runs[0]}
    settings = {"items": len(features) - 1000, "bits": BITS, "splits": SPLITS, "dimensions": features.shape[1]}
    print(record.write("alternatives", {**settings, "mean": means, "runs": runs}, ("numpy", "torch", "faiss-cpu")))


def mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 4)


def measure(queries: Floats, query_labels: Labels, database: Floats, labels: Labels, seed: int) -> dict[str, Any]:
    """Return the figures of each way on one split."""
    faiss.omp_set_num_threads(1)
    ways = {"adsh": codes(queries, query_labels, database, labels, seed)}
    unit_queries, unit = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (queries, database))
    flat = faiss.IndexFlatIP(unit.shape[1])
    flat.add(unit)
    ways["float vectors"] = ranked(unit_queries, unit, query_labels, labels) | {
        "bytes": unit.shape[1] * 4, "ms": median_ms(lambda one: flat.search(unit_queries[one : one + 1], K)),
        "seconds": 0.0,
    }  # fmt: skip
    for size in SUBVECTORS:
        ways[f"product quantisation, {size} bytes"] = quantised(unit_queries, unit, query_labels, labels, size)
    ways["linear classifier"] = classifier(queries, query_labels, database, labels, seed)
    return ways


def codes(queries: Floats, query_labels: Labels, database: Floats, labels: Labels, seed: int) -> dict[str, float]:
    """Return the figures of codes: as learned, of trained items by the network, and among new items."""
    started = time.perf_counter()
    model = adsh.ADSH(BITS, network="mlp", seed=seed, device="cpu", progress=False).fit(database, labels)
    seconds = time.perf_counter() - started
    columns = evaluate_model(model, queries, query_labels, database, labels, cases=0).columns
    query_codes = model.encode(queries)
    with tempfile.TemporaryDirectory() as folder, adsh.open_index(Path(folder) / "index", bits=BITS) as index:
        index.add([str(item) for item in range(len(database))], model.database_codes_)
        ms = median_ms(lambda one: index.search(query_codes[one : one + 1], k=K))
    found = columns["learned"]
    return {
        "MAP": round(found.map_expected, 4), "P@10": round(found.precision[found.ks.index(NEAREST)], 4),
        "MAP by the network": round(columns["network"].map_expected, 4),
        "MAP new items": round(columns["new"].map_expected, 4), "bytes": BITS // 8, "ms": ms,
        "seconds": round(seconds, 1),
    }  # fmt: skip


def quantised(queries: Floats, database: Floats, query_labels: Labels, labels: Labels, size: int) -> dict[str, float]:
    """Return the figures of a product quantiser of `size` bytes, which compares float queries with its centres."""
    index = faiss.IndexPQ(database.shape[1], size, 8, faiss.METRIC_INNER_PRODUCT)
    started = time.perf_counter()
    index.train(database)
    index.add(database)
    seconds = time.perf_counter() - started
    ms = median_ms(lambda one: index.search(queries[one : one + 1], K))
    stored = index.reconstruct_n(0, len(database))
    return ranked(queries, stored, query_labels, labels) | {"bytes": size, "ms": ms, "seconds": round(seconds, 1)}


def classifier(queries: Floats, query_labels: Labels, database: Floats, labels: Labels, seed: int) -> dict[str, float]:
    """Return the figures of a linear classifier that ranks labelled items by the probability of their label."""
    started = time.perf_counter()
    hot = np.eye(labels.max() + 1, dtype=np.float32)
    fitted = fit_logistic(database, hot[labels], np.random.default_rng(seed))
    seconds = time.perf_counter() - started
    probabilities = fitted.probabilities(queries)
    return ranked(probabilities, hot[labels], query_labels, labels) | {
        "accuracy": round(float((probabilities.argmax(axis=1) == query_labels).mean()), 4), "bytes": 1,
        "seconds": round(seconds, 1),
    }  # fmt: skip


def ranked(queries: Floats, database: Floats, query_labels: Labels, labels: Labels) -> dict[str, float]:
    """Return MAP and the precision among the ten nearest of a ranking by inner products."""
    averages, first = [], []
    for one, label in zip(queries, query_labels, strict=True):
        relevant = labels[np.argsort(-(database @ one), kind="stable")] == label
        places = np.flatnonzero(relevant) + 1
        averages.append((np.arange(1, len(places) + 1) / places).mean())
        first.append(relevant[:NEAREST].mean())
    return {"MAP": mean(averages), "P@10": mean(first)}


def median_ms(search: Callable[[int], Any]) -> float:
    """Return the median over queries of the milliseconds of one search, the least of three: others use the machine."""
    spent = np.empty((TIMED, 3))
    for one, round_ in np.ndindex(spent.shape):
        started = time.perf_counter()
        search(one)
        spent[one, round_] = 1000 * (time.perf_counter() - started)
    return round(float(np.median(spent.min(axis=1))), 3)


if __name__ == "__main__":
    main()
