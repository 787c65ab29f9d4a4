"""Trials of recipes on CIFAR-10, evaluated on 5,000 images held out of the database: a JSON line per trial.

    python runs/trials.py LOG.jsonl '{"name": "longer", "outer": 90}' '{"name": "crops", "crop": 0.5, "shift": 0}'

Keys of a trial: name, data (cifar10 or coco17), network, bits, split (a seed), seed, options (of the network), and any
value of a recipe. The queries of the protocol are never used: 500 more images per class are held out (of coco17, 1,000
in all), and are the queries instead. Two trainings with one recipe differ by .003 on 1,000 images, as much as most
recipes do; the first trials, on 1,000, show it.
"""

import json
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch

import adsh
from adsh.config import Recipe
from adsh.data import open_source, prepare, split
from adsh.evaluate import metrics
from adsh.experiments.measure import code_version

DEFAULTS = {
    "data": "cifar10", "bits": 24, "network": "efficientnet_lite0", "options": {}, "seed": 0, "split": 0,
    "preset": "modern",
}  # fmt: skip
PROTOCOLS = {"cifar10": ("59k", None), "coco17": ("coco17", 5000)}  # with the cut-off of MAP


def hold_out(dataset, database, seed):
    """Return a random validation set of the database, and the rest of it."""
    rng = np.random.default_rng([seed, 1])
    if dataset.name == "coco17":
        validation = rng.choice(database, 1000, replace=False)
    else:
        labels = dataset.labels.ids
        by_class = [rng.choice(database[labels[database] == k], 500, replace=False) for k in range(10)]
        validation = np.concatenate(by_class)
    return np.sort(validation), np.setdiff1d(database, validation)


def run_trial(values):
    """Train with a recipe and return the record."""
    trial = {name: values.get(name, default) for name, default in DEFAULTS.items()}
    recipe = {name: value for name, value in values.items() if name not in (*DEFAULTS, "name")}
    dataset, (protocol, k), bits = open_decoded(trial["data"]), PROTOCOLS[trial["data"]], trial["bits"]
    queries, database = hold_out(dataset, split(dataset, protocol, trial["split"]).database, trial["split"])
    model = adsh.ADSH(
        bits, network=trial["network"], network_options=trial["options"], preset=trial["preset"], recipe=recipe,
        seed=trial["seed"],
    )  # fmt: skip
    started = time.perf_counter()
    model.fit(dataset.subset(database))
    torch.cuda.synchronize() if torch.cuda.is_available() else None
    return {
        "name": values["name"], **{key: trial[key] for key in ("data", "network", "options", "bits", "split", "seed")},
        "preset": trial["preset"], "settings": recipe, "fit_seconds": round(time.perf_counter() - started, 2),
        "set_up_seconds": round(model.history_[0]["set_up_seconds"], 2),
        "seconds": round(sum(r["seconds"] for r in model.history_), 2),
        "images": model.recipe_.outer * model.recipe_.samples * model.recipe_.inner,
        "code_update_seconds": round(sum(r["code_update_seconds"] for r in model.history_), 3),
        "recipe": model.recipe_.saved(), "commit": code_version(),
        "rows": len(model.code_table_.count), "held_out": len(queries), "device": str(model.device_),
        **evaluate(model, dataset, queries, database, k),
    }  # fmt: skip


def evaluate(model, dataset, queries, database, k):
    """Return MAP with and without mirrored queries; and with mirrored images, of a database coded by the network."""
    scores, query_labels = {}, dataset.labels.take(queries)
    for key, flip_tta in (("map", False), ("map_mirror", True)):
        model.recipe_ = model.recipe_.replace(flip_tta=flip_tta)
        query_codes = model.encode(dataset.subset(queries))
        labels = query_labels, dataset.labels.take(database)
        value = metrics.mean_average_precision(query_codes, model.database_codes_, *labels, bits=model.bits, k=k)
        scores[key] = round(value, 5)
    quarter = database[::4]
    codes, labels = model.encode(dataset.subset(quarter)), (query_labels, dataset.labels.take(quarter))
    value = metrics.mean_average_precision(query_codes, codes, *labels, bits=model.bits, k=k and k // 4)
    return scores | {"map_network_mirror": round(value, 5)}


@cache
def open_decoded(name):
    dataset = open_source(name)
    return prepare(dataset, len(dataset[0])).usable()  # decodes packed files once, at their own size


def main():
    torch.backends.cudnn.benchmark = False
    trials = [json.loads(text) for text in sys.argv[2:]]
    for values in trials:  # raise for an unknown key before anything runs
        Recipe(**{name: value for name, value in values.items() if name not in (*DEFAULTS, "name", "schedule")})
    with Path(sys.argv[1]).open("a") as log:
        for values in trials:
            try:
                record = run_trial(values)
            except Exception as problem:  # the others are run all the same
                record = {**values, "failed": f"{type(problem).__name__}: {problem}"[:300]}
            print(json.dumps(record), flush=True)
            log.write(json.dumps(record) + "\n")
            log.flush()


if __name__ == "__main__":
    main()
