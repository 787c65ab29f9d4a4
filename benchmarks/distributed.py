"""Training shared by 1, 2 and 4 processes (gloo, CPU, one thread each): images a second, and that the outcome is one.

    python benchmarks/distributed.py

Images of 32 x 32 through `tiny` (batch norm, averaged weights, random changes), features through `mlp`, and whole runs
on the digits. A machine shows a gain up to as many processes as it has idle cores; beyond them the figures show what
messages cost. Sums are rounded otherwise in another number of processes, and AdamW divides a gradient by its own size,
however small: "one process, rounded otherwise" is what that alone does to one process, its outputs moved by 1.2e-7 of
themselves. A network that works in float64 rounds too little for that to show. With parts=4 sums are rounded equally in
all: nothing may differ. Writes results/benchmarks/distributed.json.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import record
import torch
import torch.distributed as dist
import torch.multiprocessing

import adsh
from adsh.data import open_source
from adsh.networks import create_network

SIZES = (1, 2, 4)
ROUNDED = 0
PARTS = (1, 4)
POINTS, CLASSES, BITS = 6000, 10, 48
SHARED = {"outer": 5, "samples": 2048, "batch_size": 256, "progress": False}


def features():
    rng = np.random.default_rng(0)
    labels = np.arange(POINTS) % CLASSES
    return (rng.normal(size=(CLASSES, 128))[labels] + rng.normal(size=(POINTS, 128))).astype(np.float32), labels


def images():
    rng = np.random.default_rng(1)
    labels = np.arange(POINTS) % CLASSES
    patterns = rng.integers(0, 160, (CLASSES, 32, 32, 3))
    return (patterns[labels] + rng.integers(0, 96, (POINTS, 32, 32, 3))).astype(np.uint8), labels


def digits():
    dataset = open_source("digits")
    return np.asarray(dataset.items).reshape(len(dataset), -1).astype(np.float32), dataset.labels


class InFloat64(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inside = create_network("mlp", BITS, (192,)).double()

    def calibrate(self, sample):
        self.inside.calibrate(sample.double())

    def forward(self, x):
        return self.inside(x.double()).float()


AS_MLP = {"samples": 2000, "batch_size": 64, "outer": 15, "lr": 6e-3, "recipe": {"ema": 0.0, "weight_decay": 1e-4}}
AUGMENTED = {"ema": 0.95, "flip": True, "shift": 0.125}
CASES = {
    "tiny, 32 x 32 images": (images, {**SHARED, "network": "tiny", "recipe": AUGMENTED}),
    "tiny, 32 x 32 images, SGD": (
        images,
        {**SHARED, "network": "tiny", "recipe": {**AUGMENTED, "optimizer": "sgd", "lr": 1e-3}},
    ),
    "mlp, 128 features": (features, {**SHARED, "network": "mlp"}),
    "mlp, digits, preset fast": (digits, {"network": "mlp", "preset": "fast", "progress": False}),
    "mlp in float64, digits": (digits, {"network": InFloat64(), "preset": "fast", "progress": False, **AS_MLP}),
}


class RoundedOtherwise(adsh.ADSH):
    activation = staticmethod(lambda x: torch.tanh(x) * (1 + 1.2e-7))


def shared_fit(rank, size, folder):
    torch.set_num_threads(1)
    kind, size = (RoundedOtherwise, 1) if size == ROUNDED else (adsh.ADSH, size)
    if size > 1:
        where = f"file://{folder / f'meeting-{size}'}"
        dist.init_process_group("gloo", init_method=where, rank=rank, world_size=size)
    for (case, (data, options)), parts in product(CASES.items(), PARTS if kind is adsh.ADSH else (1,)):
        recipe = {**options.get("recipe", {}), "parts": parts}
        model = kind(BITS, **{**options, "recipe": recipe}).fit(*data())
        if rank == 0:
            weights = {f"weight.{name}": value.numpy() for name, value in model.network_.state_dict().items()}
            speed = statistics.median(r["items_per_second"] for r in model.history_[1:])
            name = size if kind is adsh.ADSH else ROUNDED
            np.savez(folder / f"{case}-{name}-{parts}.npz", codes=model.database_codes_, speed=speed, **weights)
    if size > 1:
        dist.destroy_process_group()


def main():
    figures = {"load_average_before": os.getloadavg()[0], "cases": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in (*SIZES, ROUNDED):
            torch.multiprocessing.spawn(shared_fit, (size, folder), nprocs=max(size, 1))
        for case in CASES:
            kinds = [*product(SIZES, PARTS[:1]), (ROUNDED, 1), *product(SIZES, PARTS[1:])]
            runs = {kind: dict(np.load(folder / f"{case}-{kind[0]}-{kind[1]}.npz")) for kind in kinds}
            rows = []
            for (size, parts), run in runs.items():
                one = runs[1, parts]
                apart = max(float(np.abs(run[w] - one[w]).max()) for w in run if w.startswith("weight."))
                row = {
                    "processes": size or "one process, rounded otherwise",
                    "parts": parts,
                    "items_per_second": round(float(run["speed"]), 1),
                    "codes_unlike_those_of_one": int((run["codes"] != one["codes"]).any(axis=1).sum()),
                    "largest_difference_of_a_weight": apart,
                }
                print(case, row, flush=True)
                rows.append(row)
            figures["cases"][case] = rows
    figures["load_average_after"] = os.getloadavg()[0]
    print(f"written to {record.write('distributed', figures).relative_to(record.ROOT)}")


if __name__ == "__main__":
    main()
