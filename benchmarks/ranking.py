"""What re-ranking inside ties and the asymmetric ranking are worth, on coco17 (and cifar10) features.

    python benchmarks/ranking.py [FOLDER]      (the folder that holds coco17/ and cifar10/; ../shared/data by default)

A 48-bit `mlp` model is fitted to EfficientNet-Lite0 features of the database; 1,000 queries, drawn from a seed, are
searched in an index. Two columns, as everywhere: the database with its learned codes, and coded by the network.
NDCG at 100: gain is the number of labels shared. Hamming ties are taken in the order of insertion, which is random
here, and in expectation. MAP over all; the asymmetric ranking's ties (equal codes) in the order of insertion.
Prints lines and writes results/benchmarks/ranking.json.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import record

import adsh

BITS, QUERIES, K, SEEDS = 48, 1000, 100, 3


def ndcg(gains, ideal):
    """NDCG of gains in the order found, and of the best gains there are."""
    discount = 1 / np.log2(np.arange(2, len(gains) + 2))
    best = (ideal * discount).sum()
    return (gains * discount).sum() / best if best else 0.0


def average_precision(relevant):
    places = np.flatnonzero(relevant) + 1
    return np.mean(np.arange(1, len(places) + 1) / places) if len(places) else 0.0


def measure(name, features, labels, seed):
    order = np.random.default_rng(seed).permutation(len(features))
    queries, database = order[:QUERIES], order[QUERIES:]
    model = adsh.ADSH(BITS, network="mlp", device="cpu", seed=seed).fit(features[database], labels[database])
    shared = labels[queries].astype(np.int32) @ labels[database].astype(np.int32).T  # (q, n) labels in common
    ideal = -np.sort(-shared, axis=1)[:, :K]
    outputs = model.outputs(features[queries])
    codes = model.encode(features[queries])
    columns = {"learned": model.database_codes_, "network": model.encode(features[database])}
    rows = []
    for column, database_codes in columns.items():
        with tempfile.TemporaryDirectory() as folder, adsh.open_index(folder + "/i", bits=BITS) as index:
            index.add([str(i) for i in range(len(database))], database_codes, vectors=features[database])
            everything = len(database)
            ways = {
                "hamming": index.search(codes, k=everything),
                "reranked": index.search(codes, k=K, vectors=features[queries], rerank=True),
                "asymmetric": index.search(outputs, k=everything, ranking="asymmetric"),
            }
            info = index.info()
        row = {"data": name, "seed": seed, "column": column, "items": everything, "distinct": info["distinct_codes"]}
        found = {way: [np.array(matches.keys, dtype=int) for matches in answers] for way, answers in ways.items()}
        for way, answers in found.items():
            scores = [ndcg(shared[q, best[:K]], ideal[q]) for q, best in enumerate(answers)]
            row[f"ndcg_{way}"] = float(np.mean(scores))
        for way in ("hamming", "asymmetric"):
            row[f"map_{way}"] = float(
                np.mean([average_precision(shared[q, best] > 0) for q, best in enumerate(found[way])])
            )
        row["map_hamming_expected"] = float(
            adsh.metrics.mean_average_precision(codes, database_codes, labels[queries], labels[database], bits=BITS)
        )
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def main(folder):
    with np.load(folder / "coco17" / "coco17_128.npz") as stored:
        coco = stored["Y"]
    rows = []
    for seed in range(SEEDS):
        rows += measure("coco17", np.load(folder / "coco17" / "lite0_512.npy").astype(np.float32), coco, seed)
    print(f"written to {record.write('ranking', rows).relative_to(record.ROOT)}")


if __name__ == "__main__":
    warnings.simplefilter("error")
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data"))
