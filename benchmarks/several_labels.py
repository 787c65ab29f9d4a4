"""What the recipe's values for several labels are worth, on features: `target_exponent`, `weight_decay` and `gamma`.

    python benchmarks/several_labels.py      coco17 as features ($ADSH_DATA/coco17/lite0_512.npy), half an hour

1,000 items held out of the database of each split ask; the protocol's queries are not looked at. MAP over the first
5,000: of the codes as learned; with the database coded by the network; and of the codes as learned where queries have
the codes of their labels, which tells what they would find if the network made no mistake. `mlp`, preset `modern`.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import record

import adsh
from adsh.data import open_source, split
from adsh.data.sources.registry import source_root
from adsh.evaluate.metrics import mean_average_precision

BEFORE = {"weight_decay": 1e-4, "gamma": 200}  # as for one label
VALUES: dict[int, list[dict[str, Any]]] = {
    12: [{}, BEFORE, {"gamma": 200}, {"weight_decay": 1e-4}],
    24: [{}, BEFORE, {"target_exponent": 0}, {"target_exponent": 0.4}],
    48: [
        {},
        BEFORE,
        {"gamma": 200},
        {"weight_decay": 1e-4},
        {"target_exponent": 0},
        {"target_exponent": 0.15},
        {"target_exponent": 0.4},
    ],
    128: [{}, {"target_exponent": 0}],
}
FIGURES = ("learned", "network", "by_labels")


def measure(features: Any, labels: Any, database: Any, bits: int, seed: int, values: dict[str, Any]) -> list[float]:
    queries = np.sort(np.random.default_rng([seed, 1]).choice(database, 1000, replace=False))
    rest = np.setdiff1d(database, queries)
    model = adsh.ADSH(bits, network="mlp", seed=seed, recipe=values, progress=False)
    model.fit(features[rest], labels.take(rest))
    query_labels, known = labels.take(queries), labels.take(rest)
    codes, learned = model.encode(features[queries]), model.database_codes_
    pairs = ((codes, learned), (codes, model.encode(features[rest])), (model.code_for(query_labels), learned))
    return [round(mean_average_precision(*pair, query_labels, known, bits=bits, k=5000), 4) for pair in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, nargs="+", default=list(VALUES))
    parser.add_argument("--values", type=json.loads, nargs="+", help="of the recipe, as JSON, in place of those listed")
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1])
    given = parser.parse_args()
    source = open_source("coco17")
    labels, features = source.labels, np.load(source_root("coco17") / "lite0_512.npy").astype(np.float32)
    databases = {seed: split(source, "coco17", seed).database for seed in given.splits}
    rows = []
    for bits in given.bits:
        for values in given.values or VALUES[bits]:
            runs = [measure(features, labels, database, bits, s, values) for s, database in databases.items()]
            means = (round(float(np.mean(some)), 4) for some in zip(*runs, strict=True))
            rows.append({"bits": bits, "values": values, **dict(zip(FIGURES, means, strict=True)), "splits": runs})
            print(rows[-1], flush=True)
    record.write("several_labels", {"splits": given.splits, "rows": rows})


if __name__ == "__main__":
    main()
