"""Grid search over options of the methods, on features and validation items of CIFAR-10: a JSON line per trial.

    python runs/choices.py results/cifar10/choices.jsonl '{"method": "lfh", "bits": 24, "decay": [0, 0.1, 0.2]}'

Keys of a trial: method, bits, and any option of the method; of lists, every combination is tried. The validation items
of protocol `paper` are the queries; its test queries are never used.
"""

import itertools
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from adsh.data import open_source, split
from adsh.evaluate import metrics
from adsh.methods import create

FEATURES = "lite0_512.npy"


def load_features(name="cifar10"):
    """Return the data set, for its labels and splits, and the features of its items."""
    dataset = open_source(name)
    return dataset, np.load(Path(os.environ["ADSH_DATA"]) / name / FEATURES).astype(np.float32)


def run_trial(dataset, X, options, seed=0):
    options = dict(options)
    name, bits = options.pop("method"), options.pop("bits")
    parts, labels = split(dataset, "paper", seed), dataset.labels
    train = np.searchsorted(parts.database, parts.training)
    started = time.perf_counter()
    method = create(name, bits=bits, **options).fit(X[parts.database], labels.take(parts.database), train=train)
    seconds = time.perf_counter() - started
    score = metrics.mean_average_precision(
        method.encode(X[parts.validation]), method.database_codes_,
        labels.take(parts.validation), labels.take(parts.database), bits=bits,
    )  # fmt: skip
    return {
        "method": name, "bits": bits, "options": options, "protocol": "paper", "seed": seed,
        "map_validation": round(score, 5), "seconds": round(seconds, 2),
    }  # fmt: skip


def main():
    dataset, X = load_features()
    with Path(sys.argv[1]).open("a") as log:
        for text in sys.argv[2:]:
            grid = {key: value if isinstance(value, list) else [value] for key, value in json.loads(text).items()}
            for values in itertools.product(*grid.values()):
                record = run_trial(dataset, X, dict(zip(grid, values, strict=True)))
                print(json.dumps(record), flush=True)
                log.write(json.dumps(record) + "\n")
                log.flush()


if __name__ == "__main__":
    main()
