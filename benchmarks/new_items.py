"""Items added after training, without training anew: what each way of coding them is worth.

    python benchmarks/new_items.py      CIFAR-10 as features ($ADSH_DATA/cifar10), three splits, some minutes

Of the 59,000 images of protocol `59k`, 5,000 are held back as the new ones. A model learns the other 54,000; the 1,000
queries then search the new images alone: encoded by the network, encoded by their labels, and, as a
yardstick, with the codes they get when the model learns them too. The last row holds back a whole class instead: its
items are new to the model in every way, and only its own queries ask, among all.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import record

import adsh
from adsh.data import open_source, split
from adsh.data.sources.registry import source_root
from adsh.evaluate.metrics import mean_average_precision


def measure(
    features: Any, labels: Any, queries: Any, database: Any, bits: int, seed: int, unseen: int
) -> dict[str, float]:
    rng = np.random.default_rng([seed, 7])
    new = np.sort(rng.choice(len(database), 5000, replace=False))
    old = np.setdiff1d(np.arange(len(database)), new)
    query_labels, new_labels = labels[queries], labels[database[new]]

    def map_of(codes: Any, model: adsh.ADSH) -> float:
        query_codes = model.encode(features[queries])
        return round(mean_average_precision(query_codes, codes, query_labels, new_labels, bits=bits), 4)

    def learned(which: Any) -> adsh.ADSH:
        return adsh.ADSH(bits, network="mlp", seed=seed, progress=False).fit(features[which], labels[which])

    part, whole = learned(database[old]), learned(database)
    figures = {
        "by the network": map_of(part.encode(features[database[new]]), part),
        "by their labels": map_of(part.code_for(new_labels), part),
        "learned with the others": map_of(whole.database_codes_[new], whole),
    }
    without = learned(database[labels[database] != unseen])
    codes = without.encode(features[database])
    codes[labels[database] != unseen] = without.database_codes_
    unseen_queries = queries[labels[queries] == unseen]
    for name, way in (("by the network", None), ("by its label", without.code_for([unseen]))):
        if way is not None:
            codes[labels[database] == unseen] = way[0]
        query_codes = without.encode(features[unseen_queries])
        figures[f"an unseen class, {name}"] = round(
            mean_average_precision(query_codes, codes, labels[unseen_queries], labels[database], bits=bits), 4
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, default=48)
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    dataset = open_source("cifar10")
    assert dataset.labels is not None
    features = np.load(source_root("cifar10", None) / "lite0_512.npy").astype(np.float32)
    labels = np.asarray(dataset.labels.ids)
    rows = []
    for seed in arguments.splits:
        parts = split(dataset, "59k", seed)
        rows.append(measure(features, labels, parts.queries, parts.database, arguments.bits, seed, unseen=seed))
        print(rows[-1], flush=True)
    mean = {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]}
    for name, value in mean.items():
        print(f"{name:<40}{value:>8.4f}")
    print(record.write("new_items", {"bits": arguments.bits, "mean": mean, "splits": rows}))


if __name__ == "__main__":
    main()
