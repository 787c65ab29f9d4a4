"""Training time against the number of training points; and MAP against training time, with the -D variants."""

from __future__ import annotations

import math
from dataclasses import replace

from ...config import recipe
from .. import drawing
from ..cell import Cell, Record
from ..experiment_config import ExperimentConfig
from ..experiment_data import ExperimentData, open_data
from ..measure import build_model, code_version, describe_cell, train, training_seconds
from ..rendering import Rendering, Results
from ..summaries import MISSING, describe_seeds, format_score, label, mean
from ..tables import Table

TITLE = "Training time"
METHODS = ("adsh", "dsh", "dhn", "dpsh")
FULL_DATABASE_METHODS = ("dsh_d", "dhn_d", "dpsh_d")

_FRACTIONS = (0.25, 0.5, 1.0)  # of the iterations, after which MAP is measured
_MAX_TIMED = 5  # iterations timed at each size: each takes as long as the next

SecondsBySize = dict[str, dict[int, float]]  # method -> training points -> seconds
ScoreByTime = dict[str, dict[int, tuple[float, float]]]  # method -> iterations -> (seconds, MAP)


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return each method at each size, and each method after a quarter, a half and all of its iterations."""
    bits = config.bits[0]
    names = config.select((*METHODS, *FULL_DATABASE_METHODS))
    planned = []
    for seed in config.seeds:
        for points in sizes(config):
            for name in (name for name in names if name in METHODS):
                options = {"outer": timed_iterations(config), **_epoch_options(name, points)}
                planned.append(replace(config.cell(name, bits, seed, points, **options), measure="timed"))
        planned += [config.cell(name, bits, seed, outer=outer) for name in names for outer in _iterations(config)]
    return planned


def measure(cell: Cell, data: ExperimentData) -> Record:
    """Return the training time without MAP, which says nothing after so few iterations."""
    model = build_model(cell, data)
    training = train(cell, data, model)
    unknown = dict.fromkeys(("map_expected", "map_stable", "map_network", "paper"))
    origin = {"device": str(model.device_), "commit": code_version()}
    return {**describe_cell(cell, data), **unknown, "seconds": training_seconds(model, training.seconds), **origin}


def timed_iterations(config: ExperimentConfig) -> int:
    """Return how many iterations are timed at each size."""
    return min(_all_iterations(config), _MAX_TIMED)


def sizes(config: ExperimentConfig) -> list[int]:
    """Return five numbers of training points up to the whole database, on CIFAR-10 those of the paper."""
    n = len(open_data(config).split(config.seeds[0]).database)
    return [5000, 10_000, 20_000, 40_000, n] if n > 40_000 else [n * part // 8 for part in (1, 2, 4, 6, 8)]


def _epoch_options(method: str, points: int) -> dict[str, int]:
    """Let the baselines use all points in each iteration, as in their papers; ADSH samples m of them."""
    return {} if method == "adsh" else {"samples": points, "inner": 1}


def _all_iterations(config: ExperimentConfig) -> int:
    return config.outer or recipe(config.preset, config.network).outer


def _iterations(config: ExperimentConfig) -> list[int]:
    """Return the numbers of iterations after which MAP is measured."""
    return sorted({max(1, round(_all_iterations(config) * fraction)) for fraction in _FRACTIONS})


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return the training time by the number of training points, and MAP by the training time."""
    timed = [(cell, record) for cell, record in results if cell.points is not None]
    by_size = _seconds_by_size(timed)
    complete = [(cell, record) for cell, record in results if cell.points is None]
    by_time = _score_by_time(complete, "map_expected")
    panels: list[drawing.Panel] = [
        ("(a) by training points", by_size, "training points", "seconds", "xy"),
        ("(b) MAP reached", {name: dict(sorted(runs.values())) for name, runs in by_time.items()}, "seconds", "MAP",
         "x"),
    ]  # fmt: skip
    caption = "Training time: (a) against the number of training points, (b) with the MAP reached in it."
    of_new = {f"{name}, new items": runs for name, runs in _score_by_time(complete, "map_new").items()}
    tables = [_size_table(config, timed, by_size), _score_table(config, by_time | of_new)]
    return Rendering(tables, {"time": (caption, drawing.side_by_side(panels))})


def _size_table(config: ExperimentConfig, timed: Results, by_size: SecondsBySize) -> Table:
    """Return the table of training time by the number of training points.

    Args:
        config: The configuration of the experiment.
        timed: The results it is made of.
        by_size: Their mean seconds.

    Returns:
        The table.
    """
    points = sorted({n for seconds in by_size.values() for n in seconds})
    rows = [
        [name, *(f"{seconds[n]:,.1f} s" if n in seconds else MISSING for n in points)]
        for name, seconds in by_size.items()
    ]
    notes = [
        describe_seeds(timed), describe_rank(by_size, points),
        "Each iteration takes as long as the next. The baselines see every training point in each of theirs, as in "
        "their papers; ADSH a sample of constant size, or all points where they are fewer: then all see equally many.",
    ]  # fmt: skip
    title = f"Time of {timed_iterations(config)} iterations by the number of training points, {config.bits[0]} bits"
    return Table("time", title, ["method", *(f"{n:,}" for n in points)], rows, notes)


def _score_table(config: ExperimentConfig, by_time: ScoreByTime) -> Table:
    """Return the table of MAP and training time by the number of iterations."""
    iterations = _iterations(config)
    rows = []
    for name, runs in by_time.items():
        texts = {outer: f"{format_score(score)} in {seconds:,.1f} s" for outer, (seconds, score) in runs.items()}
        rows.append([name, *(texts.get(outer, MISSING) for outer in iterations)])
    headings = ["method", *(f"{outer} iterations" for outer in iterations)]
    return Table("time-map", "MAP reached, and the training time it took", headings, rows)


def _seconds_by_size(timed: Results) -> SecondsBySize:
    """Average the seconds of each method at each number of points."""
    seconds: dict[str, dict[int, list[float]]] = {}
    for cell, record in timed:
        seconds.setdefault(label(cell), {}).setdefault(cell.points or 0, []).append(record["seconds"])
    return {name: {n: mean(runs) for n, runs in by_points.items()} for name, by_points in seconds.items()}


def _score_by_time(results: Results, key: str) -> ScoreByTime:
    """Average the seconds and MAP of each method at each number of iterations; records may lack this MAP."""
    runs: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for cell, record in results:
        if record.get(key) is None:
            continue
        both = record["seconds"], record[key]
        runs.setdefault(label(cell), {}).setdefault(cell.option("outer"), []).append(both)
    return {
        name: {outer: (mean([s for s, _ in pairs]), mean([m for _, m in pairs])) for outer, pairs in by_outer.items()}
        for name, by_outer in runs.items()
    }


def describe_rank(by_size: SecondsBySize, points: list[int]) -> str:
    """Say at which numbers of points ADSH takes the least time."""
    ours, others = by_size.get("ADSH", {}), [seconds for name, seconds in by_size.items() if name != "ADSH"]
    compared = [n for n in points if n in ours and any(n in other for other in others)]
    if not compared:
        return "ADSH is not compared yet."
    behind = [f"{n:,}" for n in compared if any(other.get(n, math.inf) <= ours[n] for other in others)]
    if behind:
        return f"ADSH is not ahead at {', '.join(behind)} points."
    return "ADSH is ahead at every size" + ("." if len(compared) == len(points) else " compared so far.")
