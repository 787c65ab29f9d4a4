"""Reference runs: a method on every code length and split, one after the other, rows into OUT/summary.json.

    python runs/reference.py cifar10 --protocol 59k --network efficientnet_lite2 --out results/cifar10

A split's seed is also that of its training. Rows of the same method, preset, network, bits, protocol and split seed are
replaced; others are kept, those of runs at the same time too.
"""

import argparse
import fcntl
import json
import sys
import time
from pathlib import Path

import adsh
from adsh.data import check_overlap, open_source, prepare, split
from adsh.evaluate import evaluate_model
from adsh.experiments.measure import code_version

KEY = ("method", "preset", "network", "bits", "protocol", "seed")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--root")
    parser.add_argument("--protocol", default="59k")
    parser.add_argument("--method", default="adsh", help="adsh, or another with a network: classifier, dpsh_d, …")
    parser.add_argument("--network", default="efficientnet_lite2")
    parser.add_argument("--weights", help="a file the network starts from")
    parser.add_argument("--size", type=int)
    parser.add_argument("--preset", default="modern")
    parser.add_argument("--bits", type=int, nargs="+", default=[12, 24, 32, 48])
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--outer", type=int)
    parser.add_argument("--recipe", type=json.loads, default={}, help='other values of the recipe: {"compile": true}')
    parser.add_argument("--options", type=json.loads, default={}, help='of the network: {"dropout": 0.3}')
    parser.add_argument("--k", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no run after so many")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def main():
    given, started = arguments(), time.monotonic()
    dataset = open_source(given.dataset, root=given.root)
    dataset = prepare(dataset, len(dataset[0])).usable()  # packed files are decoded once, at their own size
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in given.splits:
        parts = split(dataset, given.protocol, seed)
        check_overlap(dataset, parts)
        queries, database = dataset.subset(parts.queries), dataset.subset(parts.database)
        for bits in given.bits:
            if time.monotonic() - started > given.seconds:
                print(f"no time for {bits} bits, split {seed}", file=sys.stderr)
                continue
            options = {"size": given.size, "weights": given.weights}
            model = create(
                given.method, bits=bits, network=given.network, preset=given.preset, outer=given.outer, seed=seed,
                recipe=given.recipe,
                network_options={name: value for name, value in options.items() if value} | given.options,
            )  # fmt: skip
            model.fit(database)
            judged = evaluate_model(model, queries, queries.labels, database, database.labels, k=given.k, cases=0)
            learned, network = judged.columns["learned"], judged.columns["network"]
            row = {
                "method": given.method, "preset": given.preset, "network": given.network, "bits": bits,
                "protocol": given.protocol, "seed": seed, "map_expected": round(learned.map_expected, 5),
                "map_stable": round(learned.map_stable, 5), "map_network": round(network.map_expected, 5),
                "seconds": round(sum(r["seconds"] for r in model.history_), 2), "device": str(model.device_),
                "commit": code_version(), "set_up_seconds": round(model.history_[0]["set_up_seconds"], 2),
                "size": getattr(getattr(model.network_, "preprocess", None), "size", None), "k": given.k,
                "outer": model.recipe_.outer, "compile": model.recipe_.compile,
                "given": {**given.recipe, **given.options},  # in the place of the preset's and the network's own
                "code_update_seconds": round(sum(r["code_update_seconds"] for r in model.history_), 3),
                "distinct_codes": learned.distinct_codes,
            }  # fmt: skip
            keep(row, given.out / "summary.json")
            print(json.dumps(row), flush=True)


def keep(row, path):
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        rows = json.loads(file.read() or "[]")
        rows = [other for other in rows if any(other[name] != row[name] for name in KEY)] + [row]
        file.truncate(0)
        file.write("[\n" + ",\n".join(json.dumps(each) for each in rows) + "\n]\n")


def create(method, *, bits, **settings):
    return adsh.ADSH(bits, **settings) if method == "adsh" else adsh.methods.create(method, bits=bits, **settings)


if __name__ == "__main__":
    main()
