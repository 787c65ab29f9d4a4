"""What a plain CPU does with features of CIFAR-10: `linear` and `mlp` in seconds, and labels for a tenth only.

    python runs/cpu.py results/cifar10/cpu.json

$ADSH_DATA/cifar10/lite0_512.npy holds the features (adsh features cifar10 makes others). Protocol `59k`, 48 bits, 50
outer iterations. With labels for a tenth of the database, the other items are coded by the network; queries search
the labelled ones, the others, and all.
"""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

import adsh
from adsh.data import open_source, split
from adsh.data.sources.registry import source_root
from adsh.evaluate.metrics import mean_average_precision

BITS = 48


def main():
    dataset = open_source("cifar10")
    features = np.load(source_root("cifar10") / "lite0_512.npy").astype(np.float32)
    labels = np.asarray(dataset.labels.ids).astype(np.int64)
    networks = {"linear": {}, "mlp": {"hidden": 1024}}
    rows = []
    for seed in (0, 1, 2):
        parts = split(dataset, "59k", seed)
        queries, database = parts.queries, parts.database

        def judged(asked, codes, which, queries=queries, database=database):
            found = mean_average_precision(asked, codes[which], labels[queries], labels[database[which]], bits=BITS)
            return round(found, 4)

        for network, options in networks.items():
            model = adsh.ADSH(BITS, network=network, network_options=options, outer=50, seed=seed, device="cpu")
            started = time.perf_counter()
            model.fit(features[database], labels[database])
            seconds = time.perf_counter() - started
            asked, everything = model.encode(features[queries]), np.arange(len(database))
            row = {"network": network, **options, "seed": seed, "seconds": round(seconds, 1)}
            row["map_expected"] = judged(asked, model.database_codes_, everything)
            row["map_network"] = judged(asked, model.encode(features[database]), everything)
            rows.append(row)
            print(json.dumps(rows[-1]), flush=True)
        known = np.random.default_rng([seed, 3]).random(len(database)) < 0.1
        model = adsh.ADSH(BITS, network="mlp", outer=50, seed=seed, device="cpu")
        model.fit(features[database], np.where(known, labels[database], -1))
        asked, codes = model.encode(features[queries]), model.database_codes_
        row = {"network": "mlp", "seed": seed, "labelled": int(known.sum()), "unlabelled": int((~known).sum())}
        row["map_labelled"] = judged(asked, codes, np.flatnonzero(known))
        row["map_unlabelled"] = judged(asked, codes, np.flatnonzero(~known))
        row["map_all"] = judged(asked, codes, np.arange(len(database)))
        rows.append(row)
        print(json.dumps(rows[-1]), flush=True)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    about = {
        "commit": commit.stdout.strip(), "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "torch": torch.__version__, "bits": BITS, "protocol": "59k", "outer": 50,
    }  # fmt: skip
    Path(sys.argv[1]).write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
