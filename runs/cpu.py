"""ADSH on features of CIFAR-10 on a CPU: `linear` and `mlp`, trained in seconds, with labels for all or a tenth.

    python runs/cpu.py results/cifar10/cpu.json

$ADSH_DATA/cifar10/lite0_512.npy holds the features (`adsh features cifar10` computes others). Protocol `59k`, 48 bits,
the defaults of each network. With labels for a tenth of the database, the other items are coded by the network; queries
search the labelled items, the others, and all.
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
from adsh.evaluate import evaluate_model
from adsh.evaluate.metrics import mean_average_precision

BITS = 48
NETWORKS = ("linear", "mlp")
LABELLED = 0.1  # the fraction of the database that keeps its labels


class Experiment:
    """One split of the features, on which models are trained and scored."""

    def __init__(self, features, labels, parts, seed):
        self.features, self.labels, self.seed = features, labels, seed
        self.queries, self.database = parts.queries, parts.database

    def train_fully_labelled(self, network):
        """Return a row with the training time and MAP: codes as learned, by the network, and among new items."""
        model = adsh.ADSH(BITS, network=network, seed=self.seed, device="cpu")
        started = time.perf_counter()
        model.fit(self.features[self.database], self.labels[self.database])
        seconds = time.perf_counter() - started
        sides = [part for side in (self.queries, self.database) for part in (self.features[side], self.labels[side])]
        columns = evaluate_model(model, *sides, cases=0).columns
        keys = {"map_expected": "learned", "map_network": "network", "map_new": "new"}
        scores = {key: round(columns[name].map_expected, 4) for key, name in keys.items()}
        return {"network": network, "seed": self.seed, "seconds": round(seconds, 1), **scores}

    def train_partly_labelled(self):
        """Return a row with MAP over the labelled items, over the others, and over all."""
        known = np.random.default_rng([self.seed, 3]).random(len(self.database)) < LABELLED
        model = adsh.ADSH(BITS, network="mlp", seed=self.seed, device="cpu")
        model.fit(self.features[self.database], np.where(known, self.labels[self.database], -1))
        query_codes, codes = model.encode(self.features[self.queries]), model.database_codes_
        return {
            "network": "mlp", "seed": self.seed, "labelled": int(known.sum()), "unlabelled": int((~known).sum()),
            "map_labelled": self.score(query_codes, codes, np.flatnonzero(known)),
            "map_unlabelled": self.score(query_codes, codes, np.flatnonzero(~known)),
            "map_all": self.score(query_codes, codes, np.arange(len(self.database))),
        }  # fmt: skip

    def score(self, query_codes, codes, subset):
        """Return MAP over a subset of the database."""
        labels = self.labels[self.queries], self.labels[self.database[subset]]
        return round(mean_average_precision(query_codes, codes[subset], *labels, bits=BITS), 4)


def main():
    dataset = open_source("cifar10")
    features = np.load(source_root("cifar10") / "lite0_512.npy").astype(np.float32)
    labels = np.asarray(dataset.labels.ids).astype(np.int64)
    rows = []
    for seed in (0, 1, 2):
        experiment = Experiment(features, labels, split(dataset, "59k", seed), seed)
        for network in NETWORKS:
            rows.append(experiment.train_fully_labelled(network))
            print(json.dumps(rows[-1]), flush=True)
        rows.append(experiment.train_partly_labelled())
        print(json.dumps(rows[-1]), flush=True)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    about = {
        "commit": commit.stdout.strip(), "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "torch": torch.__version__, "bits": BITS, "protocol": "59k",
    }  # fmt: skip
    Path(sys.argv[1]).write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
