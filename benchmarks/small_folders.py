"""A few thousand items: codes next to the float vectors they are made of, and a class that was not trained.

    ADSH_DATA=data python benchmarks/small_folders.py      three sets of 1,500 items, three splits, some minutes

The sets are those of `many_classes.py small-…`: 1,500 database items of CIFAR-10, of 20 classes of Caltech-101, of 30
birds, as features of EfficientNet-Lite0. Queries are new items. Float vectors are ranked by their cosine; codes of 48
bits are those of the database as learned, or as the network encodes it.

Then one class in turn is left out of training, five a split, and its items are added to an index with the network's
codes, as `adsh index add` does. Of the ten nearest items to its queries, how many are of the class: by codes alone,
with ties ordered by the vectors of 64 bytes that the index stores by default, and by float vectors alone?
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import record
from many_classes import small

import adsh
from adsh.evaluate import evaluate_baselines, evaluate_model
from adsh.evaluate.baselines import COSINE

BITS, NEAREST = 48, 10
SETS = ("cifar10", "caltech", "cub")
SPLITS, UNSEEN = 3, 5


def fit(features: Any, labels: Any) -> adsh.ADSH:
    return adsh.ADSH(BITS, network="mlp", seed=0, device="cpu", progress=False).fit(features, labels)


def against_floats(features: Any, labels: Any, queries: Any, database: Any) -> dict[str, float]:
    """Return MAP of new queries: codes as learned, codes by the network, and float cosine."""
    sides = features[queries], labels[queries], features[database], labels[database]
    columns = evaluate_model(fit(*sides[2:]), *sides, cases=0).columns
    found = evaluate_baselines(sides[0], sides[2], sides[1], sides[3])
    (cosine,) = (baseline for baseline in found if baseline.name == COSINE)
    return {
        "codes as learned": round(columns["learned"].map_expected, 4),
        "codes by the network": round(columns["network"].map_expected, 4),
        "float cosine": round(cosine.columns["network"].map_expected, 4),
    }


def unseen_class(features: Any, labels: Any, queries: Any, database: Any, unseen: int) -> dict[str, float]:
    """Return the share of the class among the ten nearest to its queries, with and without vectors."""
    known, own = database[labels[database] != unseen], queries[labels[queries] == unseen]
    model = fit(features[known], labels[known])
    codes = model.encode(features[database])
    codes[labels[database] != unseen] = model.database_codes_
    query_codes, precision = model.encode(features[own]), {}
    with tempfile.TemporaryDirectory() as folder, adsh.open_index(Path(folder) / "index", bits=BITS) as index:
        index.add([str(item) for item in database], codes, vectors=features[database])
        for name, options in (
            ("by codes alone", {}),
            ("re-ranked by vectors", {"vectors": features[own], "rerank": True}),
        ):
            found = index.search(query_codes, k=NEAREST, **options)
            right = [labels[int(key)] == unseen for matches in found for key in matches.keys]
            precision[name] = round(float(np.mean(right)), 4)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    nearest = database[np.argsort(-(unit[own] @ unit[database].T), axis=1)[:, :NEAREST]]
    return precision | {"float cosine": round(float((labels[nearest] == unseen).mean()), 4)}


def main() -> None:
    figures: dict[str, Any] = {"bits": BITS, "items": 1500, "splits": SPLITS, "sets": {}}
    for name in SETS:
        compared, unseen = [], []
        for split in range(SPLITS):
            drawn = small(name, split)
            compared.append(against_floats(*drawn))
            print(name, split, compared[-1], flush=True)
            counts = np.unique(drawn[1][drawn[3]], return_counts=True)
            large = counts[0][counts[1] >= 2 * NEAREST]  # ten items of it can be found
            for label in np.random.default_rng([split, 5]).choice(large, UNSEEN, replace=False):
                unseen.append(unseen_class(*drawn, int(label)))
            print(name, split, unseen[-UNSEEN:], flush=True)
        figures["sets"][name] = {"MAP": compared, "P@10 of a class that was not trained": unseen}
    print(record.write("small_folders", figures))


if __name__ == "__main__":
    main()
