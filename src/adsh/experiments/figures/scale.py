"""Beyond the paper: what an update of all codes costs, from ten thousand points to a billion."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...learn import CodeTable
from .. import drawing
from ..cell import Cell
from ..experiment_config import ExperimentConfig, ExperimentData
from ..measure import version_of_code
from ..rendering import Rendering
from ..summaries import Done
from ..tables import Table

TITLE = "Time of an update of all codes"
CLASSES, SAMPLES, UPDATES, GAMMA = 10, 2000, 20, 200.0
_AT_ONCE = 1 << 24


def cells(config: ExperimentConfig) -> list[Cell]:
    """Powers of ten up to the config's largest. The data are made up: only their number matters."""
    powers = [10**power for power in range(4, 10) if 10**power <= config.largest]
    return [Cell("adsh", max(config.bits), config.seeds[0], points=n, measure="scale") for n in powers]


def measured(cell: Cell, data: ExperimentData) -> dict[str, Any]:
    """The median time of an update; of ten classes, one byte a point."""
    n = cell.points or 0
    rng = np.random.default_rng(cell.seed)
    labels = np.empty(n, dtype=np.uint8)
    for start in range(0, n, _AT_ONCE):
        part = labels[start : start + _AT_ONCE]
        part[:] = rng.integers(0, CLASSES, len(part), dtype=np.uint8)
    centres = rng.choice([-1.0, 1.0], size=(CLASSES, cell.bits))
    table = CodeTable(labels, cell.bits)
    taken = []
    for _ in range(UPDATES):
        omega = table.draw(min(SAMPLES, n), rng)
        outputs = np.tanh(1.5 * centres[labels[omega]] + rng.normal(size=(len(omega), cell.bits)))
        started = time.perf_counter()
        table.gram()
        table.similarity_sums(omega)
        table.update(omega, outputs, GAMMA)
        taken.append(time.perf_counter() - started)
    return {
        "method": cell.method, "bits": cell.bits, "seed": cell.seed, "points": n,
        "seconds": float(np.median(taken)), "rows": len(table.rows), "device": "cpu", "commit": version_of_code(),
    }  # fmt: skip


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """Milliseconds an update against n."""
    by_size = {record["points"]: 1000 * record["seconds"] for _, record in done}
    rows = [[f"{n:,}", f"{milliseconds:.2f} ms"] for n, milliseconds in by_size.items()]
    title = f"An update of all codes: {SAMPLES:,} sampled points, {max(config.bits)} bits, {CLASSES} classes"
    notes = [f"Median of {UPDATES}, on the CPU. The codes are exactly those of the dense algorithm."]
    caption = "Time of an update of all codes against the number of points."
    figure = drawing.lines({"ADSH": by_size}, "database points", "milliseconds", log="x", from_zero=True)
    return Rendering([Table("scale", title, ["points", "an update"], rows, notes)], {"scale": (caption, figure)})
