"""Every method on the same features of CIFAR-10, protocol `paper`: rows into results/cifar10/baselines.json.

    python runs/baselines.py                              # all of them, hours on 2 cores; cheap ones first
    python runs/baselines.py --methods itq sdh --bits 12 24

A row that is there for this commit is not run again, so a stopped run goes on where it was; --again runs it all the
same, and --any-commit leaves rows of other commits as they are. Plain methods learn from the 5,000 training items, the
-D ones, Lin:V and ADSH from the whole database of 58,000. `map_expected` is against the codes of the database as the
method gives them, `map_network` with the database coded as the queries are.
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
    ("lsh", {}), ("itq", {}), ("lin_lin", {}), ("sdh", {}), ("lfh", RIDGE), ("cosdish", RIDGE), ("fasth", RIDGE),
    ("sdh_d", {}), ("lfh_d", RIDGE), ("cosdish_d", RIDGE), ("lin_v", {}),
    ("adsh", {"network": "linear"}), ("adsh", {"network": "mlp"}),
    *[(name, {"network": "mlp"}) for name in DEEP if name != "dpsh_d"],
    ("lfh", TREES), ("cosdish", TREES), ("fasth", TREES), ("dpsh_d", {"network": "mlp"}),
    ("cosdish_d", TREES), ("lfh_d", TREES),
]  # fmt: skip


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", help="only these")
    parser.add_argument("--hash-function", choices=["trees", "ridge"], help="only with this one, of those that have it")
    parser.add_argument("--bits", type=int, nargs="+", default=[12, 24, 32, 48])
    parser.add_argument("--splits", type=int, nargs="+", default=[0])
    parser.add_argument("--protocol", default="paper")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing after so many")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument("--any-commit", action="store_true", help="a row of any commit counts as there")
    parser.add_argument("--out", type=Path, default=Path("results/cifar10/baselines.json"))
    return parser.parse_args()


def main():
    given, started = arguments(), time.monotonic()
    dataset = open_source("cifar10")
    X = np.load(Path(os.environ["ADSH_DATA"]) / "cifar10" / FEATURES).astype(np.float32)
    wanted = [
        (name, options, bits, seed)
        for name, options in RUNS
        if (not given.methods or name in given.methods)
        and given.hash_function in (None, options.get("hash_function", given.hash_function))
        for seed in given.splits
        for bits in given.bits
    ]
    for place, (name, options, bits, seed) in enumerate(wanted, 1):
        row = {
            "method": name, "hash_function": options.get("hash_function"),
            "preset": "modern" if "network" in options else None, "network": options.get("network"), "bits": bits,
            "protocol": given.protocol, "seed": seed,
        }  # fmt: skip
        rows = json.loads(given.out.read_text()) if given.out.exists() else []
        there = [other for other in rows if all(other[key] == row[key] for key in KEY)]
        if there and not given.again and (given.any_commit or there[0]["commit"] == code_version()):
            continue
        if time.monotonic() - started > given.seconds:
            print(f"no time for {len(wanted) - place + 1} of {len(wanted)} runs", file=sys.stderr)
            break
        row |= measured(dataset, X, name, options, bits, given.protocol, seed)
        rows = json.loads(given.out.read_text()) if given.out.exists() else []  # another process may have added some
        rows = [other for other in rows if any(other[key] != row[key] for key in KEY)] + [row]
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text("[\n" + ",\n".join(json.dumps(each) for each in rows) + "\n]\n")
        print(
            f"{place}/{len(wanted)}  {name} {row['hash_function'] or row['network'] or ''} {bits} bits: "
            f"{row['map_expected']:.4f}, coded alike {row['map_network']:.4f}, {row['seconds']:.1f} s",
            flush=True,
        )


def measured(dataset, X, name, options, bits, protocol, seed):
    """Trains one and judges it."""
    parts, labels = split(dataset, protocol, seed), dataset.labels
    database, known = X[parts.database], labels.take(parts.database)
    started = time.perf_counter()
    if name == "adsh":
        method = adsh.ADSH(bits, **options, progress=False).fit(database, known)
    else:
        train = np.searchsorted(parts.database, parts.training)
        method = create(name, bits=bits, **options).fit(database, known, train=train)
    seconds = time.perf_counter() - started
    stages = getattr(method, "seconds_", {})
    queries, asked = method.encode(X[parts.queries]), labels.take(parts.queries)

    def judged(codes, ties="expected"):
        value = metrics.mean_average_precision(queries, codes, asked, known, bits=bits, ties=ties)
        return round(float(value), 5)

    codes = method.database_codes_
    return {
        "map_expected": judged(codes), "map_stable": judged(codes, "stable"),
        "map_network": judged(method.encode(database)), "seconds": round(seconds, 2),
        "seconds_codes": round(stages["codes"], 2) if stages else None,
        "seconds_hash_function": round(stages["hash function"], 2) if stages else None,
        "device": "cpu", "commit": code_version(), "features": FEATURES,
        "distinct_codes": len(np.unique(codes, axis=0)),
    }  # fmt: skip


if __name__ == "__main__":
    main()
