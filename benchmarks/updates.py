"""What an update gives next to training anew, and how well unknown classes are told from known ones.

    ADSH_DATA=data python benchmarks/updates.py [classes growing labels unknown …] [--bits 48] [--seeds 3]

classes   CIFAR-10 features, 8 classes and then 2 more: with all old items, with 100 kept ones a class, and trained anew
growing   2 classes, and 2 more four times, with all old items and with the kept ones
labels    coco17 features: the 13 most frequent labels, and then the items that have one of the other 4
unknown   trained on 8 classes, queries of all 10: AUROC of the familiarity, over five pairs of classes left out; also
          by the largest probability of the posterior, for comparison

Features of $ADSH_DATA/cifar10 and $ADSH_DATA/coco17; an mlp with its defaults; 1,000 queries that no training saw, for
unknown 5,000. Writes results/benchmarks/updates.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import record
import torch
from many_classes import read_cifar10, read_coco17

import adsh
from adsh.evaluate.metrics import mean_average_precision

RESULTS = Path(__file__).parents[1] / "results/benchmarks/updates.json"
PAIRS = ((8, 9), (0, 3), (5, 1), (2, 7), (4, 6))
Split = tuple[Any, Any]  # queries, database


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=[*MEASURES])
    parser.add_argument("--bits", type=int, default=48)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    figures = json.loads(RESULTS.read_text(encoding="utf-8"))["figures"] if RESULTS.exists() else {}
    for name in options.what:
        rows = []
        for seed in range(options.seeds):
            rows += MEASURES[name](options.bits, seed)
            print(name, *rows, sep="\n  ", flush=True)
        figures[name] = rows
        record.write(RESULTS.stem, {**figures, "bits": options.bits})


def draw(items: int, seed: int, queries: int = 1000) -> Split:
    order = np.random.default_rng([5000, seed]).permutation(items)
    return order[:queries], order[queries:]


def fitted(X: Any, labels: Any, bits: int, seed: int) -> Any:
    return adsh.ADSH(bits, network="mlp", seed=seed, device="cpu", progress=False).fit(X, labels)


def found(model: Any, X: Any, labels: Any, database: Any) -> float:
    codes = model.encode(X)
    return round(mean_average_precision(codes, model.database_codes_, labels, database, bits=model.bits), 4)


def timed(work: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    return work(), round(time.perf_counter() - started, 1)


def classes(bits: int, seed: int) -> list[dict[str, Any]]:
    """8 classes and then 2 more."""
    X, labels = read_cifar10()
    queries, database = draw(len(X), seed)
    old, new = database[labels[database] < 8], database[labels[database] >= 8]
    ordered = np.concatenate([old, new])
    rows = []
    for way in ("all old items", "100 kept a class", "no update", "anew"):
        if way == "anew":
            model, seconds = timed(lambda: fitted(X[ordered], labels[ordered], bits, seed))
        else:
            model = fitted(X[old], labels[old], bits, seed)
            before = model.database_codes_.copy()
            all_old = X[old] if way.startswith("all") else None
            seconds = 0.0
            if way != "no update":
                _, seconds = timed(lambda m=model, kept=all_old: m.update(X[new], labels[new], old=kept))
        row: dict[str, Any] = {"way": way, "seed": seed, "seconds": seconds, "iterations": len(model.history_)}
        if way == "no update":
            coded = np.concatenate([model.database_codes_, model.encode(X[new])])
            hot = queries[labels[queries] >= 8]
            far = mean_average_precision(model.encode(X[hot]), coded, labels[hot], labels[ordered], bits=bits)
            row |= {"new classes": round(far, 4)}
        else:
            changed = 0 if way == "anew" else int((model.database_codes_[: len(old)] != before).sum())
            row |= {"changed": changed, "all": found(model, X[queries], labels[queries], labels[ordered])}
            for name, chosen in (("old classes", labels[queries] < 8), ("new classes", labels[queries] >= 8)):
                row[name] = found(model, X[queries[chosen]], labels[queries[chosen]], labels[ordered])
        rows.append(row)
    return rows


def growing(bits: int, seed: int) -> list[dict[str, Any]]:
    """2 + 2 + 2 + 2 + 2 classes."""
    X, labels = read_cifar10()
    queries, database = draw(len(X), seed)
    parts = [database[labels[database] // 2 == step] for step in range(5)]
    ordered = np.concatenate(parts)
    rows = []
    for way in ("all old items", "100 kept a class", "anew"):
        if way == "anew":
            model = fitted(X[ordered], labels[ordered], bits, seed)
        else:
            model = fitted(X[parts[0]], labels[parts[0]], bits, seed)
            for step in range(1, 5):
                old = X[np.concatenate(parts[:step])] if way.startswith("all") else None
                model.update(X[parts[step]], labels[parts[step]], old=old)
        rows.append({"way": way, "seed": seed, "all": found(model, X[queries], labels[queries], labels[ordered])})
    return rows


def labels(bits: int, seed: int) -> list[dict[str, Any]]:
    """Four labels that are added to 13."""
    X, hot = read_coco17()
    queries, database = draw(len(X), seed)
    rare = np.argsort(hot.sum(axis=0))[:4]
    has_rare = hot[database][:, rare].any(axis=1)
    old, new = database[~has_rare], database[has_rare]
    ordered = np.concatenate([old, new])
    rows = []
    for way in ("all old items", "100 kept a label", "anew"):
        if way == "anew":
            model = fitted(X[ordered], hot[ordered], bits, seed)
        else:
            model = fitted(X[old], hot[old], bits, seed)
            model.update(X[new], hot[new], old=X[old] if way.startswith("all") else None)
        row = {"way": way, "seed": seed, "all": found(model, X[queries], hot[queries], hot[ordered])}
        chosen = queries[hot[queries][:, rare].any(axis=1)]
        row["new labels"] = found(model, X[chosen], hot[chosen], hot[ordered])
        rows.append(row)
    return rows


def unknown(bits: int, seed: int) -> list[dict[str, Any]]:
    """Queries of two classes that were not trained, among those of the eight that were."""
    from sklearn.metrics import roc_auc_score

    X, labels = read_cifar10()
    queries, database = draw(len(X), seed, 5000)
    rows = []
    for pair in PAIRS:
        known = database[~np.isin(labels[database], pair)]
        model = fitted(X[known], labels[known], bits, seed)
        truth, share = ~np.isin(labels[queries], pair), model.familiarity(X[queries])
        with torch.inference_mode():
            surest = model.network_.network(torch.as_tensor(X[queries])).softmax(1).amax(1).numpy()
        rows.append(
            {
                "pair": pair,
                "seed": seed,
                "AUROC": round(float(roc_auc_score(truth, share)), 4),
                "AUROC of the largest probability": round(float(roc_auc_score(truth, surest)), 4),
                "below .01": {"known": round(float((share[truth] < 0.01).mean()), 4),
                              "unknown": round(float((share[~truth] < 0.01).mean()), 4)},
            }
        )  # fmt: skip
    return rows


MEASURES = {"classes": classes, "growing": growing, "labels": labels, "unknown": unknown}

if __name__ == "__main__":
    main()
