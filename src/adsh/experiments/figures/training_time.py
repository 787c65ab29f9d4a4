"""Training time against the number of training points; and MAP against training time, with the -D variants."""

from __future__ import annotations

import math
from dataclasses import replace

from ...config import recipe
from .. import drawing
from ..cell import Cell
from ..experiment_config import ExperimentConfig, ExperimentData, open_data
from ..measure import Record, about, fitted, model_of, training_time, version_of_code
from ..rendering import Rendering
from ..summaries import Done, label, mean, seeds_in_words, share
from ..tables import Table

TITLE = "Training time"
METHODS = ("adsh", "dsh", "dhn", "dpsh")
WHOLE = ("dsh_d", "dhn_d", "dpsh_d")
_SHARES = (0.25, 0.5, 1.0)  # of the iterations, to see MAP grow
_TIMED = 5  # iterations at each size, at most: each takes as long as the next


def cells(config: ExperimentConfig) -> list[Cell]:
    """Every size with every method, and every method at a quarter, a half and all of its iterations."""
    bits = config.bits[0]
    wanted = [name for name in (*METHODS, *WHOLE) if not config.methods or name in config.methods]
    found = []
    for seed in config.seeds:
        for points in sizes(config):
            for name in (name for name in wanted if name in METHODS):
                cell = config.cell(name, bits, seed, points, outer=timed_iterations(config), **_epochs(name, points))
                found.append(replace(cell, measure="timed"))
        found += [config.cell(name, bits, seed, outer=outer) for name in wanted for outer in _lengths(config)]
    return found


def timed(cell: Cell, data: ExperimentData) -> Record:
    """The training time alone: after so few iterations MAP says nothing."""
    model = model_of(cell, data)
    _, _, seconds = fitted(cell, data, model)
    unknown = dict.fromkeys(("map_expected", "map_stable", "map_network", "paper"))
    device = {"device": str(model.device_), "commit": version_of_code()}
    return {**about(cell, data), **unknown, "seconds": training_time(model, seconds), **device}


def timed_iterations(config: ExperimentConfig) -> int:
    """How many are timed at each size."""
    return min(_iterations(config), _TIMED)


def sizes(config: ExperimentConfig) -> list[int]:
    """Five sizes up to the whole database, as the paper has them."""
    whole = len(open_data(config).split(config.seeds[0]).database)
    return [5000, 10_000, 20_000, 40_000, whole] if whole > 40_000 else [whole * part // 8 for part in (1, 2, 4, 6, 8)]


def _epochs(method: str, points: int) -> dict[str, int]:
    """The baselines see all their points in each iteration, as their papers have it; ADSH samples m of them."""
    return {} if method == "adsh" else {"samples": points, "inner": 1}


def _iterations(config: ExperimentConfig) -> int:
    return config.outer or recipe(config.preset, config.network).outer


def _lengths(config: ExperimentConfig) -> list[int]:
    return sorted({max(1, round(_iterations(config) * part)) for part in _SHARES})


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """Seconds by size, and MAP by seconds."""
    sized = [(cell, record) for cell, record in done if cell.points is not None]
    grown = [(cell, record) for cell, record in done if cell.points is None]
    by_size, by_time = _by_size(sized), _by_time(grown)
    points = sorted({n for of_each in by_size.values() for n in of_each})
    rows = [
        [name, *(f"{of_each[n]:,.1f} s" if n in of_each else "–" for n in points)] for name, of_each in by_size.items()
    ]
    notes = [
        seeds_in_words(sized), _ahead_or_not(by_size, points),
        "Each iteration takes as long as the next. The baselines see every training point in each of theirs, as in "
        "their papers; ADSH a sample of constant size, or all points where they are fewer: then all see equally many.",
    ]  # fmt: skip
    title = f"Time of {timed_iterations(config)} iterations by the number of training points, {config.bits[0]} bits"
    tables = [Table("time", title, ["method", *(f"{n:,}" for n in points)], rows, notes)]
    lengths = _lengths(config)
    reached = [
        [name, *(f"{share(of_each[outer][1])} in {of_each[outer][0]:,.1f} s" if outer in of_each else "–"
                 for outer in lengths)]
        for name, of_each in by_time.items()
    ]  # fmt: skip
    headings = ["method", *(f"{outer} iterations" for outer in lengths)]
    tables.append(Table("time-map", "MAP reached, and the training time it took", headings, reached))
    lines = {name: dict(sorted(of_each.values())) for name, of_each in by_time.items()}
    parts: list[drawing.Part] = [
        ("(a) by training points", by_size, "training points", "seconds", "xy"),
        ("(b) MAP reached", lines, "seconds", "MAP", "x"),
    ]
    caption = "Training time: (a) against the number of training points, (b) with the MAP reached in it."
    return Rendering(tables, {"time": (caption, drawing.side_by_side(parts))})


def _by_size(sized: Done) -> dict[str, dict[int, float]]:
    """Mean seconds of each method at each number of points it was timed with."""
    found: dict[str, dict[int, list[float]]] = {}
    for cell, record in sized:
        found.setdefault(label(cell), {}).setdefault(cell.points or 0, []).append(record["seconds"])
    return {name: {n: mean(seconds) for n, seconds in of_each.items()} for name, of_each in found.items()}


def _by_time(grown: Done) -> dict[str, dict[int, tuple[float, float]]]:
    """Mean seconds and mean MAP of each method at each number of iterations."""
    found: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for cell, record in grown:
        both = record["seconds"], record["map_expected"]
        found.setdefault(label(cell), {}).setdefault(cell.option("outer"), []).append(both)
    return {
        name: {outer: (mean([s for s, _ in runs]), mean([m for _, m in runs])) for outer, runs in of_each.items()}
        for name, of_each in found.items()
    }


def _ahead_or_not(by_size: dict[str, dict[int, float]], points: list[int]) -> str:
    """Whether ADSH takes least at every size."""
    ours, others = by_size.get("ADSH", {}), [of_each for name, of_each in by_size.items() if name != "ADSH"]
    compared = [n for n in points if n in ours and any(n in other for other in others)]
    if not compared:
        return "ADSH is not compared yet."
    behind = [f"{n:,}" for n in compared if any(other.get(n, math.inf) <= ours[n] for other in others)]
    if behind:
        return f"ADSH is not ahead at {', '.join(behind)} points."
    return "ADSH is ahead at every size" + ("." if len(compared) == len(points) else " compared so far.")
