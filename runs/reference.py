"""Reference runs: a method at every code length and split, one after the other: rows of OUT/summary.json.

    python runs/reference.py cifar10 --protocol 59k --network efficientnet_lite2 --out results/cifar10

The seed of a split is also that of its training. Rows with the same method, preset, network, bits, protocol and seed
are replaced; others stay, also those that another process writes at the same time.
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


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--root")
    parser.add_argument("--protocol", default="59k")
    parser.add_argument("--method", default="adsh", help="adsh, or a deep baseline: classifier, dpsh_d, …")
    parser.add_argument("--network", default="efficientnet_lite2")
    parser.add_argument("--weights", help="a weight file that the network starts from")
    parser.add_argument("--size", type=int)
    parser.add_argument("--preset", default="modern")
    parser.add_argument("--bits", type=int, nargs="+", default=[12, 24, 32, 48])
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--outer", type=int)
    parser.add_argument("--recipe", type=json.loads, default={}, help='values of the recipe: {"compile": true}')
    parser.add_argument("--options", type=json.loads, default={}, help='options of the network: {"dropout": 0.3}')
    parser.add_argument("--k", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no run after this time")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def main():
    args, started = parse_arguments(), time.monotonic()
    dataset = open_source(args.dataset, root=args.root)
    dataset = prepare(dataset, len(dataset[0])).usable()  # decodes packed files once, at their own size
    args.out.mkdir(parents=True, exist_ok=True)
    for seed in args.splits:
        parts = split(dataset, args.protocol, seed)
        check_overlap(dataset, parts)
        queries, database = dataset.subset(parts.queries), dataset.subset(parts.database)
        for bits in args.bits:
            if time.monotonic() - started > args.seconds:
                print(f"no time for {bits} bits, split {seed}", file=sys.stderr)
                continue
            row = train_and_evaluate(args, queries, database, bits, seed)
            add_row(row, args.out / "summary.json")
            print(json.dumps(row), flush=True)


def train_and_evaluate(args, queries, database, bits, seed):
    options = {"size": args.size, "weights": args.weights}
    model = create(
        args.method, bits=bits, network=args.network, preset=args.preset, outer=args.outer, seed=seed,
        recipe=args.recipe,
        network_options={name: value for name, value in options.items() if value} | args.options,
    )  # fmt: skip
    model.fit(database)
    evaluation = evaluate_model(model, queries, queries.labels, database, database.labels, k=args.k, cases=0)
    learned, network = evaluation.columns["learned"], evaluation.columns["network"]
    return {
        "method": args.method, "preset": args.preset, "network": args.network, "bits": bits,
        "protocol": args.protocol, "seed": seed, "map_expected": round(learned.map_expected, 5),
        "map_stable": round(learned.map_stable, 5), "map_network": round(network.map_expected, 5),
        "map_new": round(evaluation.columns["new"].map_expected, 5),
        "seconds": round(sum(r["seconds"] for r in model.history_), 2), "device": str(model.device_),
        "commit": code_version(), "set_up_seconds": round(model.history_[0]["set_up_seconds"], 2),
        "size": getattr(getattr(model.network_, "preprocess", None), "size", None), "k": args.k,
        "outer": model.recipe_.outer, "compile": model.recipe_.compile,
        "given": {**args.recipe, **args.options},  # instead of the preset's and the network's own
        "code_update_seconds": round(sum(r["code_update_seconds"] for r in model.history_), 3),
        "distinct_codes": learned.distinct_codes,
    }  # fmt: skip


def add_row(row, path):
    """Add a row to a file, in place of one with the same key; locked against other processes."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        rows = json.loads(file.read() or "[]")
        rows = [other for other in rows if any(other[name] != row[name] for name in KEY)] + [row]
        file.truncate(0)
        file.write("[\n" + ",\n".join(json.dumps(each) for each in rows) + "\n]\n")


def create(method, *, bits, **options):
    return adsh.ADSH(bits, **options) if method == "adsh" else adsh.methods.create(method, bits=bits, **options)


if __name__ == "__main__":
    main()
