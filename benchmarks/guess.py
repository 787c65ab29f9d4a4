"""How often the guess of a query's label is right, next to the share that it gives.

    ADSH_DATA=data python benchmarks/guess.py      three sets of 1,500 items, three splits, a minute or two

The sets are those of `many_classes.py small-…`: 1,500 database items of CIFAR-10, of 20 classes of Caltech-101, of 30
birds, as features of EfficientNet-Lite0; queries are new items. Items have the codes that were learned, or those by the
network. Guesses by the ten nearest items, weighted by 1 / (1 + d), are next to those of `adsh.search.guess`.

The gap is the calibration error: the mean difference, in ten bins of the share, between the share and how often guesses
are right. The decay of 16 was chosen by it on other splits, of 3,000 and 4,000 items of the same three sources, from
decays between 7 and 96.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import record
from many_classes import small

import adsh
from adsh.search.guess import Guesser

BITS, NEAREST, BINS = (16, 48), 10, 10
SETS = ("cifar10", "caltech", "cub")
SPLITS = 3

Pair = tuple[bool, float]  # whether a guess is right, and its share


def by_items(index: adsh.index.Index, queries: Any, truth: list[str]) -> list[Pair]:
    """Return the guesses of the library."""
    guesser = Guesser(index)
    guesses = [guesser(query[None]) for query in queries]
    return [
        (one is not None and one.label == right, one.share if one else 0.0)
        for one, right in zip(guesses, truth, strict=True)
    ]


def by_nearest(index: adsh.index.Index, queries: Any, truth: list[str]) -> list[Pair]:
    """Return the guesses of the ten nearest items."""
    pairs = []
    for matches, right in zip(index.search(queries, NEAREST), truth, strict=True):
        votes: dict[str, float] = {}
        for match in matches:
            votes[match.metadata["class"]] = votes.get(match.metadata["class"], 0.0) + 1 / (1 + match.distance)
        best = max(votes, key=votes.__getitem__)
        pairs.append((best == right, votes[best] / sum(votes.values())))
    return pairs


def summary(pairs: list[Pair]) -> dict[str, Any]:
    """Return how many guesses are right, the mean share, the gap, and both in each bin."""
    right, share = (np.array(one, dtype=float) for one in zip(*pairs, strict=True))
    bins = np.minimum((share * BINS).astype(int), BINS - 1)
    used = [(number, bins == number) for number in range(BINS) if (bins == number).any()]
    gap = sum(abs(right[where].mean() - share[where].mean()) * where.mean() for _, where in used)
    return {
        "queries": len(pairs),
        "right": round(float(right.mean()), 3),
        "share": round(float(share.mean()), 3),
        "gap": round(float(gap), 3),
        "bins": {
            f"{number / BINS:.1f}": [int(where.sum()), round(float(right[where].mean()), 3)] for number, where in used
        },
    }


def main() -> None:
    figures: dict[str, Any] = {"items": 1500, "splits": SPLITS, "sets": {}}
    for name in SETS:
        for bits in BITS:
            pairs: dict[str, list[Pair]] = {}
            for split in range(SPLITS):
                features, labels, queries, database = small(name, split)
                model = adsh.ADSH(bits, network="mlp", seed=0, device="cpu", progress=False)
                model.fit(features[database], labels[database])
                truth, encoded = [str(label) for label in labels[queries]], model.encode(features[queries])
                about = [{"class": str(label)} for label in labels[database]]
                sides = {"as learned": model.database_codes_, "by the network": model.encode(features[database])}
                for side, codes in sides.items():
                    with (
                        tempfile.TemporaryDirectory() as folder,
                        adsh.open_index(Path(folder) / "i", bits=bits) as index,
                    ):
                        index.add([str(item) for item in database], codes, about)
                        for way, guesses in (("all items", by_items), ("ten nearest", by_nearest)):
                            pairs.setdefault(f"{side}, {way}", []).extend(guesses(index, encoded, truth))
            found = figures["sets"][f"{name}, {bits} bits"] = {way: summary(some) for way, some in pairs.items()}
            print(name, bits, {way: (one["right"], one["share"], one["gap"]) for way, one in found.items()}, flush=True)
    print(record.write("guess", figures))


if __name__ == "__main__":
    main()
