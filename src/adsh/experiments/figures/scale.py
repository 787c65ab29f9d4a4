"""Not in the paper: the time of an update of all codes, from ten thousand points to a billion."""

from __future__ import annotations

import time

import numpy as np

from ...learn import CodeTable
from .. import drawing
from ..cell import Cell, Record
from ..experiment_config import ExperimentConfig
from ..experiment_data import ExperimentData
from ..measure import code_version
from ..rendering import Rendering, Results
from ..tables import Table

TITLE = "Time of an update of all codes"
CLASSES, SAMPLES, UPDATES, GAMMA = 10, 2000, 20, 200.0

_CHUNK = 1 << 24  # labels drawn at a time


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return a cell for each power of ten up to `max_points`."""
    sizes = [10**power for power in range(4, 10) if 10**power <= config.max_points]
    return [Cell("adsh", max(config.bits), config.seeds[0], points=n, measure="scale") for n in sizes]


def measure(cell: Cell, data: ExperimentData) -> Record:
    """Return the median time of an update on synthetic labels of ten classes, one byte per point."""
    n = cell.points or 0
    rng = np.random.default_rng(cell.seed)
    labels = np.empty(n, dtype=np.uint8)
    for start in range(0, n, _CHUNK):
        chunk = labels[start : start + _CHUNK]
        chunk[:] = rng.integers(0, CLASSES, len(chunk), dtype=np.uint8)
    centres = rng.choice([-1.0, 1.0], size=(CLASSES, cell.bits))
    table = CodeTable(labels, cell.bits)
    seconds = []
    for _ in range(UPDATES):
        omega = table.draw(min(SAMPLES, n), rng)
        outputs = np.tanh(1.5 * centres[labels[omega]] + rng.normal(size=(len(omega), cell.bits)))
        started = time.perf_counter()
        table.gram()
        table.similarity_sums(omega)
        table.update(omega, outputs, GAMMA)
        seconds.append(time.perf_counter() - started)
    return {
        "method": cell.method, "bits": cell.bits, "seed": cell.seed, "points": n,
        "seconds": float(np.median(seconds)), "rows": len(table.rows), "device": "cpu", "commit": code_version(),
    }  # fmt: skip


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return the milliseconds of an update against the number of points."""
    milliseconds = {record["points"]: 1000 * record["seconds"] for _, record in results}
    rows = [[f"{n:,}", f"{value:.2f} ms"] for n, value in milliseconds.items()]
    title = f"An update of all codes: {SAMPLES:,} sampled points, {max(config.bits)} bits, {CLASSES} classes"
    notes = [f"Median of {UPDATES}, on the CPU. The codes are exactly those of the dense algorithm."]
    caption = "Time of an update of all codes against the number of points."
    figure = drawing.lines({"ADSH": milliseconds}, "database points", "milliseconds", log="x", from_zero=True)
    return Rendering([Table("scale", title, ["points", "an update"], rows, notes)], {"scale": (caption, figure)})
