"""Training time: seconds to reach a MAP, whole trainings by the number of points, and five iterations of each.

A whole training is what the tables have: as many items as ADSH sees for DSH and DHN, 150 epochs for DPSH. Shorter ones,
by the same factor for all, are complete as well, with a schedule of their own.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...config import recipe
from .. import drawing
from ..cell import Cell, Record
from ..experiment_config import ExperimentConfig
from ..experiment_data import ExperimentData, open_data
from ..iterations import total_iterations
from ..measure import build_model, code_version, describe_cell, train, training_seconds
from ..rendering import Rendering, Results
from ..summaries import MISSING, describe_seeds, format_score, label, mean
from ..tables import Table

TITLE = "Training time"
METHODS = ("adsh", "dsh", "dhn", "dpsh")
FULL_DATABASE_METHODS = ("dsh_d", "dhn_d", "dpsh_d")
TARGETS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)  # MAP whose first reaching is timed

_SHARES = {"an eighth": 0.125, "a quarter": 0.25, "half": 0.5, "whole": 1.0}  # of a training
_MAX_TIMED = 5  # iterations timed at each size: each takes as long as the next

SecondsBySize = dict[str, dict[int, float]]  # method -> training points -> seconds
ScoreByTime = dict[str, dict[str, tuple[float, float]]]  # method -> share of a training -> (seconds, MAP)


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return trainings of each method, whole and shorter, then whole ones and five iterations at each size."""
    bits = config.bits[0]
    names = config.select((*METHODS, *FULL_DATABASE_METHODS))
    planned = []
    for seed in config.seeds:
        for name in names:
            planned += [_with_iterations(config.cell(name, bits, seed), outer) for outer in _iterations(config, name)]
        for points in sizes(config):
            for name in (name for name in names if name in METHODS):
                options = {"outer": timed_iterations(config), **_epoch_options(name, points)}
                whole, few = (config.cell(name, bits, seed, points, **given) for given in ({}, options))
                planned += [replace(cell, measure="timed") for cell in (whole, few)]
    return planned


def measure(cell: Cell, data: ExperimentData) -> Record:
    """Return the training time without MAP: with fewer points, the database is another."""
    model = build_model(cell, data)
    training = train(cell, data, model)
    unknown = dict.fromkeys(("map_expected", "map_stable", "map_network", "paper"))
    origin = {"device": str(model.device_), "commit": code_version()}
    return {**describe_cell(cell, data), **unknown, "seconds": training_seconds(model, training.seconds), **origin}


def timed_iterations(config: ExperimentConfig) -> int:
    """Return how many iterations are timed at each size."""
    return min(config.outer or recipe(config.preset, config.network).outer, _MAX_TIMED)


def sizes(config: ExperimentConfig) -> list[int]:
    """Return five numbers of training points up to the whole database, on CIFAR-10 those of the paper."""
    n = len(open_data(config).split(config.seeds[0]).database)
    return [5000, 10_000, 20_000, 40_000, n] if n > 40_000 else [n * part // 8 for part in (1, 2, 4, 6, 8)]


def _epoch_options(method: str, points: int) -> dict[str, int]:
    """Let the baselines use all points in each iteration, as in their papers; ADSH samples m of them."""
    return {} if method == "adsh" else {"samples": points, "inner": 1}


def _iterations(config: ExperimentConfig, method: str) -> dict[int | None, str]:
    """Return the outer iterations of each shorter training of a method, and which share of the whole one it is.

    None stands for the whole training, which is the cell of the tables.
    """
    split = open_data(config).split(config.seeds[0])
    is_sampled = len(split.training) > 0 and method in METHODS and method != "adsh"
    points = len(split.training if is_sampled else split.database)
    whole = total_iterations(config, method, points, len(split.database))
    found: dict[int | None, str] = {}
    for name, share in _SHARES.items():
        outer = max(1, round(whole * share))
        outer += outer == config.outer  # which stands for the whole training
        found |= {outer: name} if outer < whole else {}
    return found | {None: "whole"}


def _with_iterations(cell: Cell, outer: int | None) -> Cell:
    return (
        cell if outer is None else replace(cell, options=tuple(sorted({**dict(cell.options), "outer": outer}.items())))
    )


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return the seconds to reach a MAP, the time of whole trainings, and that of five iterations."""
    sized = [(cell, record) for cell, record in results if cell.points is not None]
    few = [(cell, record) for cell, record in sized if _is_of_few_iterations(config, cell)]
    whole = [pair for pair in sized if pair[0].option("outer") == config.outer and not pair[0].option("samples")]
    complete = [(cell, record) for cell, record in results if cell.points is None]
    by_time = _score_by_time(config, complete, "map_expected")
    by_size = {"whole": _seconds_by_size(whole), "few": _seconds_by_size(few)}
    panels: list[drawing.Panel] = [
        ("(a) whole trainings", by_size["whole"], "training points", "seconds", "xy"),
        ("(b) MAP reached", {name: dict(sorted(runs.values())) for name, runs in by_time.items()}, "seconds", "MAP",
         "x"),
    ]  # fmt: skip
    caption = "Training time: (a) of whole trainings, by the number of training points, (b) with the MAP reached in it."
    of_new = {f"{name}, new items": runs for name, runs in _score_by_time(config, complete, "map_new").items()}
    bits, seeds = config.bits[0], describe_seeds(complete)
    title = f"Time of whole trainings by the number of training points, {bits} bits"
    short = f"Time of {timed_iterations(config)} iterations by the number of training points, {bits} bits"
    tables = [
        _target_table(f"Seconds of training to a MAP, {bits} bits", by_time, seeds),
        _size_table("time-whole", title, whole, by_size["whole"], (
            "A whole training of DSH and DHN sees as many items as ADSH's, one of DPSH is its authors' 150 epochs.",
        )),
        _score_table(by_time | of_new),
        _size_table("time", short, few, by_size["few"], (
            "Each iteration takes as long as the next. The baselines see every training point in each of theirs, as in "
            "their papers; ADSH a sample of constant size, or all points where they are fewer: then all see equally "
            "many.",
        )),
    ]  # fmt: skip
    return Rendering([table for table in tables if table.rows], {"time": (caption, drawing.side_by_side(panels))})


def _is_of_few_iterations(config: ExperimentConfig, cell: Cell) -> bool:
    is_adsh = cell.method == "adsh" and cell.option("outer") == timed_iterations(config)
    return is_adsh or cell.option("samples") is not None


def _target_table(title: str, by_time: ScoreByTime, seeds: str) -> Table:
    """Return the table of the seconds that the shortest training to a MAP takes.

    Args:
        title: The title.
        by_time: The seconds and MAP of each training.
        seeds: Over which seeds they are averaged.

    Returns:
        The table, with the targets that any method reaches.
    """
    best = max((score for runs in by_time.values() for _, score in runs.values()), default=0.0)
    targets = [target for target in TARGETS if target <= best]
    rows = []
    for name, runs in by_time.items():
        reached = [min((s for s, score in runs.values() if score >= target), default=None) for target in targets]
        rows.append([name, *("not reached" if seconds is None else f"{seconds:,.1f} s" for seconds in reached)])
    note = f"Of trainings of {', '.join(_SHARES)} length, each with its own schedule, the shortest that reaches it."
    return Table("time-to-map", title, ["method", *(f"{target:.2f}"[1:] for target in targets)], rows, [seeds, note])


def _size_table(name: str, title: str, timed: Results, by_size: SecondsBySize, notes: tuple[str, ...]) -> Table:
    """Return the table of training time by the number of training points.

    Args:
        name: The name of the table.
        title: Its title.
        timed: The results it is made of.
        by_size: Their mean seconds.
        notes: Sentences below it.

    Returns:
        The table.
    """
    points = sorted({n for seconds in by_size.values() for n in seconds})
    rows = [
        [method, *(f"{seconds[n]:,.1f} s" if n in seconds else MISSING for n in points)]
        for method, seconds in by_size.items()
    ]
    notes = (describe_seeds(timed), describe_rank(by_size, points), *notes)
    return Table(name, title, ["method", *(f"{n:,}" for n in points)], rows, list(notes))


def _score_table(by_time: ScoreByTime) -> Table:
    """Return the table of MAP and training time by the length of the training."""
    rows = []
    for name, runs in by_time.items():
        texts = {share: f"{format_score(score)} in {seconds:,.1f} s" for share, (seconds, score) in runs.items()}
        rows.append([name, *(texts.get(share, MISSING) for share in _SHARES)])
    return Table("time-map", "MAP reached, and the training time it took", ["training", *_SHARES], rows)


def _seconds_by_size(timed: Results) -> SecondsBySize:
    """Average the seconds of each method at each number of points."""
    seconds: dict[str, dict[int, list[float]]] = {}
    for cell, record in timed:
        seconds.setdefault(label(cell), {}).setdefault(cell.points or 0, []).append(record["seconds"])
    return {name: {n: mean(runs) for n, runs in by_points.items()} for name, by_points in seconds.items()}


def _score_by_time(config: ExperimentConfig, results: Results, key: str) -> ScoreByTime:
    """Average the seconds and MAP of each method by the length of its training.

    Args:
        config: The configuration of the experiment.
        results: The results.
        key: The key of MAP; records of earlier versions may lack it.
    """
    shares = {cell.method: _iterations(config, cell.method) for cell, _ in results}
    runs: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for cell, record in results:
        if record.get(key) is not None:
            share = shares[cell.method].get(cell.option("outer"), "whole")
            runs.setdefault(label(cell), {}).setdefault(share, []).append((record["seconds"], record[key]))
    return {
        name: {share: (mean([s for s, _ in pairs]), mean([m for _, m in pairs])) for share, pairs in by_share.items()}
        for name, by_share in runs.items()
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
