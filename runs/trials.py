"""Trials of recipes on CIFAR-10, judged on 5,000 images held out of the database; a line of JSON each.

    python runs/trials.py LOG.jsonl '{"name": "longer", "outer": 90}' '{"name": "crops", "crop": 0.5, "shift": 0}'

Keys of a trial: name, data (cifar10 or coco17), network, bits, split (a seed), seed, options (of the network), and any
value of a recipe. The queries of the protocol are never looked at: 500 images a class more are held out (of coco17,
1,000 of all), and ask in their place. Two
trainings of one recipe differ by .003 on 1,000 images, as much as most recipes do: the first trials, of 1,000, show it.
"""

import json
import sys
import time
from dataclasses import asdict, fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

import adsh
from adsh.config import Recipe
from adsh.data import open_source, prepare, split
from adsh.evaluate import metrics
from adsh.experiments.measure import code_version

RECIPE = {field.name for field in fields(Recipe)}


PROTOCOLS = {"cifar10": ("59k", None), "coco17": ("coco17", 5000)}  # and the k of MAP at k


def held_out(dataset, database, seed):
    """Drawn from the database by the seed: (validation, the rest)."""
    rng = np.random.default_rng([seed, 1])
    if dataset.name == "coco17":
        drawn = rng.choice(database, 1000, replace=False)
    else:
        labels = dataset.labels.ids
        drawn = np.concatenate([rng.choice(database[labels[database] == k], 500, replace=False) for k in range(10)])
    return np.sort(drawn), np.setdiff1d(database, drawn)


def trial(settings):
    settings = dict(settings)
    data = settings.pop("data", "cifar10")
    dataset, (protocol, k) = opened(data), PROTOCOLS[data]
    name, bits = settings.pop("name"), settings.pop("bits", 24)
    network, options = settings.pop("network", "efficientnet_lite0"), settings.pop("options", {})
    seed, drawn = settings.pop("seed", 0), settings.pop("split", 0)
    preset = settings.pop("preset", "modern")
    asking, database = held_out(dataset, split(dataset, protocol, drawn).database, drawn)
    labels, of_queries = dataset.labels.take(database), dataset.labels.take(asking)
    model = adsh.ADSH(bits, network=network, network_options=options, preset=preset, recipe=settings, seed=seed)
    started = time.perf_counter()
    model.fit(dataset.subset(database))
    torch.cuda.synchronize() if torch.cuda.is_available() else None
    record = {
        "name": name, "data": data, "network": network, "options": options, "bits": bits, "split": drawn, "seed": seed,
        "preset": preset, "settings": settings, "fit_seconds": round(time.perf_counter() - started, 2),
        "set_up_seconds": round(model.history_[0]["set_up_seconds"], 2),
        "seconds": round(sum(r["seconds"] for r in model.history_), 2),
        "images": model.recipe_.outer * model.recipe_.samples * model.recipe_.inner,
        "code_update_seconds": round(sum(r["code_update_seconds"] for r in model.history_), 3),
        "recipe": asdict(model.recipe_), "commit": code_version(),
        "rows": len(model.code_table_.count), "held_out": len(asking), "device": str(model.device_),
    }  # fmt: skip
    for mirror in (False, True):
        model.recipe_ = replace(model.recipe_, mirror=mirror)
        queries, mark = model.encode(dataset.subset(asking)), "_mirror" if mirror else ""
        found = metrics.mean_average_precision(queries, model.database_codes_, of_queries, labels, bits=bits, k=k)
        record[f"map{mark}"] = round(found, 5)
    some = database[::4]  # by the network, the last of these ways
    coded, of_some, k = model.encode(dataset.subset(some)), dataset.labels.take(some), k and k // 4
    found = metrics.mean_average_precision(queries, coded, of_queries, of_some, bits=bits, k=k)
    record["map_network_mirror"] = round(found, 5)
    return record


@cache
def opened(name):
    dataset = open_source(name)
    return prepare(dataset, len(dataset[0])).usable()  # packed files are decoded once, at their own size


def main():
    torch.backends.cudnn.benchmark = False
    with Path(sys.argv[1]).open("a") as log:
        for text in sys.argv[2:]:
            settings = json.loads(text)
            unknown = set(settings) - RECIPE - {"name", "data", "network", "options", "bits", "split", "seed", "preset"}
            assert not unknown, unknown
            try:
                record = trial(settings)
            except Exception as problem:  # the others still run
                record = {**settings, "failed": f"{type(problem).__name__}: {problem}"[:300]}
            print(json.dumps(record), flush=True)
            log.write(json.dumps(record) + "\n")
            log.flush()


if __name__ == "__main__":
    main()
