"""A process that adds, replaces and removes items as fast as it can, and writes down what was acknowledged.

    python -m tests.index.killed_writer FOLDER LOG SEED [PREFIX OF ITS KEYS]

Before each call it logs what it is about to do, and after it that the call returned, in lines of JSON. Who kills it
knows from the log what must be there, what must not, and which one call may or may not have happened.
"""

from __future__ import annotations

import json
import random
import sys

import numpy as np

import adsh
from adsh.index.embedded import index as embedded

BITS = 48


def code(number):
    """The code of an item's version: anybody can say what it has to be."""
    return np.random.default_rng(number).integers(0, 256, BITS // 8, dtype=np.uint8)


def run(folder, log, seed, prefix=""):
    embedded._REWRITE_FROM = 300  # snapshots are written often
    draw = random.Random(seed)
    held: dict[str, int] = {}
    version = seed * 1_000_000
    index = adsh.open_index(folder, bits=BITS)
    with open(log, "a", buffering=1) as file:
        print(json.dumps({"prefix": prefix} if prefix else {}), file=file)
        while True:
            if held and draw.random() < 0.3:
                keys = draw.sample(sorted(held), min(len(held), draw.randrange(1, 20)))
                print(json.dumps({"remove": keys}), file=file)
                index.remove(keys)
                for key in keys:
                    del held[key]
            else:
                new = {}
                for _ in range(draw.randrange(1, 40)):
                    version += 1
                    new[f"{prefix}key {draw.randrange(3000)}"] = version
                print(json.dumps({"add": new}), file=file)
                index.add(list(new), np.stack([code(v) for v in new.values()]), [{"v": v} for v in new.values()])
                held |= new
            print('"done"', file=file)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
