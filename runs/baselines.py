"""Evaluate every method on the same features of CIFAR-10, protocol `paper`: rows of results/cifar10/baselines.json.

    python runs/baselines.py                              # all methods, hours on 2 cores; cheap ones first
    python runs/baselines.py --methods itq sdh --bits 12 24

A row of the current commit is not computed again, so an interrupted run continues; --recompute recomputes it, and
--any-commit accepts rows of other commits. Methods are trained on the 5,000 training items; the -D methods, Lin:V and
ADSH on the whole database of 58,000. `map_expected` uses the database codes that the method learned, `map_network`
database codes from the hash function, as for queries.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import adsh
from adsh.data import open_source, split
from adsh.evaluate import metrics
from adsh.experiments.measure import code_version
from adsh.methods import DEEP, create

FEATURES = "lite0_512.npy"
KEY = ("method", "hash_function", "preset", "network", "bits", "protocol", "seed")
TREES, RIDGE = {"hash_function": "trees"}, {"hash_function": "ridge"}
RUNS = [  # name, options; cheap ones first
    ("lsh", {}), ("itq", {}), ("lin_lin", {}), ("sdh", {}), ("lfh", RIDGE), ("lfh_decay", RIDGE), ("cosdish", RIDGE),
    ("fasth", RIDGE), ("sdh_d", {}), ("lfh_d", RIDGE), ("lfh_decay_d", RIDGE), ("cosdish_d", RIDGE), ("lin_v", {}),
    ("adsh", {"network": "linear"}), ("adsh", {"network": "mlp"}),
    *[(name, {"network": "mlp"}) for name in DEEP if name != "dpsh_d"],
    ("lfh", TREES), ("lfh_decay", TREES), ("cosdish", TREES), ("fasth", TREES), ("dpsh_d", {"network": "mlp"}),
    ("cosdish_d", TREES), ("lfh_d", TREES), ("lfh_decay_d", TREES),
]  # fmt: skip


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", help="run only these")
    parser.add_argument("--hash-function", choices=["trees", "ridge"], help="run two-step methods only with this one")
    parser.add_argument("--bits", type=int, nargs="+", default=[12, 24, 32, 48])
    parser.add_argument("--splits", type=int, nargs="+", default=[0])
    parser.add_argument("--protocol", default="paper")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no run after this time")
    parser.add_argument("--recompute", "--again", action="store_true", help="recompute rows that exist")
    parser.add_argument("--any-commit", action="store_true", help="accept rows of any commit")
    parser.add_argument("--out", type=Path, default=Path("results/cifar10/baselines.json"))
    return parser.parse_args()


def main():
    args, started = parse_arguments(), time.monotonic()
    dataset = open_source("cifar10")
    X = np.load(Path(os.environ["ADSH_DATA"]) / "cifar10" / FEATURES).astype(np.float32)
    runs = [
        (name, options, bits, seed)
        for name, options in RUNS
        if (not args.methods or name in args.methods)
        and args.hash_function in (None, options.get("hash_function", args.hash_function))
        for seed in args.splits
        for bits in args.bits
    ]
    for number, (name, options, bits, seed) in enumerate(runs, 1):
        row = {
            "method": name, "hash_function": options.get("hash_function"),
            "preset": "modern" if "network" in options else None, "network": options.get("network"), "bits": bits,
            "protocol": args.protocol, "seed": seed,
        }  # fmt: skip
        existing = [other for other in read_rows(args.out) if all(other[key] == row[key] for key in KEY)]
        if existing and not args.recompute and (args.any_commit or existing[0]["commit"] == code_version()):
            continue
        if time.monotonic() - started > args.seconds:
            print(f"no time for {len(runs) - number + 1} of {len(runs)} runs", file=sys.stderr)
            break
        row |= evaluate(dataset, X, name, options, bits, args.protocol, seed)
        rows = read_rows(args.out)  # read again: another process may have added some
        rows = [other for other in rows if any(other[key] != row[key] for key in KEY)] + [row]
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text("[\n" + ",\n".join(json.dumps(each) for each in rows) + "\n]\n")
        print(
            f"{number}/{len(runs)}  {name} {row['hash_function'] or row['network'] or ''} {bits} bits: "
            f"{row['map_expected']:.4f}, hashed {row['map_network']:.4f}, {row['seconds']:.1f} s",
            flush=True,
        )


def read_rows(path):
    return json.loads(path.read_text()) if path.exists() else []


def evaluate(dataset, X, name, options, bits, protocol, seed):
    """Train a method and return its part of the row."""
    parts, labels = split(dataset, protocol, seed), dataset.labels
    database, database_labels = X[parts.database], labels.take(parts.database)
    started = time.perf_counter()
    if name == "adsh":
        method = adsh.ADSH(bits, **options, progress=False).fit(database, database_labels)
    else:
        train = np.searchsorted(parts.database, parts.training)
        method = create(name, bits=bits, **options).fit(database, database_labels, train=train)
    seconds = time.perf_counter() - started
    stages = getattr(method, "seconds_", {})
    query_codes, query_labels = method.encode(X[parts.queries]), labels.take(parts.queries)

    def score(codes, ties="expected"):
        value = metrics.mean_average_precision(query_codes, codes, query_labels, database_labels, bits=bits, ties=ties)
        return round(float(value), 5)

    codes = method.database_codes_
    return {
        "map_expected": score(codes), "map_stable": score(codes, "stable"),
        "map_network": score(method.encode(database)), "seconds": round(seconds, 2),
        "seconds_codes": round(stages["codes"], 2) if stages else None,
        "seconds_hash_function": round(stages["hash function"], 2) if stages else None,
        "device": "cpu", "commit": code_version(), "features": FEATURES,
        "distinct_codes": len(np.unique(codes, axis=0)),
    }  # fmt: skip


if __name__ == "__main__":
    main()
