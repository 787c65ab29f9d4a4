"""What a softer target of similar pairs is worth where items have several labels: the recipe's value `soften`.

    python benchmarks/softer_targets.py      coco17 as features ($ADSH_DATA/coco17/lite0_512.npy), a quarter of an hour

1,000 items held out of the database of each split ask; the protocol's queries are not looked at. MAP over the first
5,000, of the codes as learned and with the database coded by the network; `mlp`, 30 iterations of 8,192 points.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import record

import adsh
from adsh.data import open_source, split
from adsh.data.sources import source_root
from adsh.evaluate.metrics import mean_average_precision

RECIPE = {"outer": 30, "samples": 8192, "inner": 1, "batch_size": 256}


def measure(features: Any, labels: Any, database: Any, bits: int, seed: int, soften: float) -> list[float]:
    asking = np.sort(np.random.default_rng([seed, 1]).choice(database, 1000, replace=False))
    rest = np.setdiff1d(database, asking)
    model = adsh.ADSH(bits, network="mlp", seed=seed, recipe=RECIPE | {"soften": soften}, progress=False)
    model.fit(features[rest], labels.take(rest))
    asked, known = model.encode(features[asking]), (labels.take(asking), labels.take(rest))
    both = (model.database_codes_, model.encode(features[rest]))
    return [round(mean_average_precision(asked, codes, *known, bits=bits, k=5000), 4) for codes in both]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, nargs="+", default=[12, 24, 48, 128])
    parser.add_argument("--soften", type=float, nargs="+", default=[0.0, 0.15, 0.25, 0.4])
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1])
    given = parser.parse_args()
    source = open_source("coco17")
    labels, features = source.labels, np.load(source_root("coco17") / "lite0_512.npy").astype(np.float32)
    databases = {seed: split(source, "coco17", seed).database for seed in given.splits}
    rows = []
    for bits in given.bits:
        for soften in [0.0] if bits <= 12 else given.soften:
            runs = [measure(features, labels, database, bits, s, soften) for s, database in databases.items()]
            learned, network = (round(float(np.mean(some)), 4) for some in zip(*runs, strict=True))
            rows.append({"bits": bits, "soften": soften, "learned": learned, "network": network, "splits": runs})
            print(rows[-1], flush=True)
    record.write("softer_targets", {"recipe": RECIPE, "splits": given.splits, "rows": rows})


if __name__ == "__main__":
    main()
