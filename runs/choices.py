"""Options of the methods tried on CIFAR-10's features, judged on validation items; a line of JSON each.

    python runs/choices.py results/cifar10/choices.jsonl '{"method": "lfh", "bits": 24, "decay": [0, 0.1, 0.2]}'

Keys of a trial: method, bits, and any option of the method; of lists, every combination is tried. The validation
items of protocol `paper` ask; its queries are never looked at.
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


def features(name="cifar10"):
    """The dataset, for its labels and splits, and the features of its items."""
    dataset = open_source(name)
    return dataset, np.load(Path(os.environ["ADSH_DATA"]) / name / FEATURES).astype(np.float32)


def trial(dataset, X, settings, seed=0):
    settings = dict(settings)
    name, bits = settings.pop("method"), settings.pop("bits")
    parts, labels = split(dataset, "paper", seed), dataset.labels
    train = np.searchsorted(parts.database, parts.training)
    started = time.perf_counter()
    method = create(name, bits=bits, **settings).fit(X[parts.database], labels.take(parts.database), train=train)
    seconds = time.perf_counter() - started
    judged = metrics.mean_average_precision(
        method.encode(X[parts.validation]), method.database_codes_,
        labels.take(parts.validation), labels.take(parts.database), bits=bits,
    )  # fmt: skip
    return {
        "method": name, "bits": bits, "options": settings, "protocol": "paper", "seed": seed,
        "map_validation": round(judged, 5), "seconds": round(seconds, 2),
    }  # fmt: skip


def main():
    dataset, X = features()
    with Path(sys.argv[1]).open("a") as log:
        for text in sys.argv[2:]:
            given = {key: value if isinstance(value, list) else [value] for key, value in json.loads(text).items()}
            for values in itertools.product(*given.values()):
                record = trial(dataset, X, dict(zip(given, values, strict=True)))
                print(json.dumps(record), flush=True)
                log.write(json.dumps(record) + "\n")
                log.flush()


if __name__ == "__main__":
    main()
