"""Training time against the number of training points; and MAP against training time, with the -D variants."""

from __future__ import annotations

from dataclasses import replace

from ..config import recipe
from . import drawing
from .cell import Cell
from .measure import Record, about, fitted, model_of, training_time, version_of_code
from .setting import Data, Setting, data_of
from .shown import Shown
from .summaries import Done, label, mean, seeds_in_words, share, values
from .tables import Table

TITLE = "Training time"
METHODS = ("adsh", "dsh", "dhn", "dpsh")
WHOLE = ("dsh_d", "dhn_d", "dpsh_d")
_SHARES = (0.25, 0.5, 1.0)  # of the iterations, to see MAP grow
_TIMED = 5  # iterations at each size, at most: each takes as long as the next


def cells(setting: Setting) -> list[Cell]:
    """Every size with every method, and every method at a quarter, a half and all of its iterations."""
    bits = setting.bits[0]
    wanted = [name for name in (*METHODS, *WHOLE) if not setting.methods or name in setting.methods]
    found = []
    for seed in setting.seeds:
        for points in sizes(setting):
            for name in (name for name in wanted if name in METHODS):
                cell = setting.cell(name, bits, seed, points, outer=timed_iterations(setting), **_epochs(name, points))
                found.append(replace(cell, measure="timed"))
        found += [setting.cell(name, bits, seed, outer=outer) for name in wanted for outer in _lengths(setting)]
    return found


def timed(cell: Cell, data: Data) -> Record:
    """The training time alone: after so few iterations MAP says nothing."""
    model = model_of(cell, data)
    _, _, seconds = fitted(cell, data, model)
    unknown = dict.fromkeys(("map_expected", "map_stable", "map_network", "paper"))
    device = {"device": str(model.device_), "commit": version_of_code()}
    return {**about(cell, data), **unknown, "seconds": training_time(model, seconds), **device}


def timed_iterations(setting: Setting) -> int:
    """How many are timed at each size."""
    return min(_iterations(setting), _TIMED)


def sizes(setting: Setting) -> list[int]:
    """Five sizes up to the whole database, as the paper has them."""
    whole = len(data_of(setting).split(setting.seeds[0]).database)
    return [5000, 10_000, 20_000, 40_000, whole] if whole > 40_000 else [whole * part // 8 for part in (1, 2, 4, 6, 8)]


def _epochs(method: str, points: int) -> dict[str, int]:
    """The baselines see all their points in each iteration, as their papers have it; ADSH samples m of them."""
    return {} if method == "adsh" else {"samples": points, "inner": 1}


def _iterations(setting: Setting) -> int:
    return setting.outer or recipe(setting.preset, setting.network).outer


def _lengths(setting: Setting) -> list[int]:
    return sorted({max(1, round(_iterations(setting) * part)) for part in _SHARES})


def show(setting: Setting, done: Done) -> Shown:
    """Seconds by size, and MAP by seconds."""
    sized = [(cell, record) for cell, record in done if cell.points is not None]
    grown = [(cell, record) for cell, record in done if cell.points is None]
    points = sorted({cell.points for cell, _ in sized if cell.points is not None})
    names = list(dict.fromkeys(label(cell) for cell, _ in sized))
    by_size = {
        name: {n: mean([r["seconds"] for c, r in sized if label(c) == name and c.points == n]) for n in points}
        for name in names
    }
    rows = [[name, *(f"{seconds:,.1f} s" for seconds in of_each.values())] for name, of_each in by_size.items()]
    tables = [
        Table("time", f"Time of {timed_iterations(setting)} iterations by the number of training points, "
              f"{setting.bits[0]} bits", ["method", *(f"{n:,}" for n in points)], rows,
              [seeds_in_words(sized), "Each iteration takes as long as the next. The baselines see every training "
               "point in each of theirs, as in their papers; ADSH a sample of constant size, or all points where they "
               "are fewer: with so few they see equally many."]),
    ]  # fmt: skip
    by_time: dict[str, dict[float, float]] = {}
    shown = []
    for name in dict.fromkeys(label(cell) for cell, _ in grown):
        mine = [(cell, record) for cell, record in grown if label(cell) == name]
        points_of = {}
        for outer in sorted({cell.option("outer") for cell, _ in mine}):
            some = [(cell, record) for cell, record in mine if cell.option("outer") == outer]
            points_of[mean(values(some, "seconds"))] = mean(values(some, "map_expected"))
        by_time[name] = points_of
        shown.append([name, *(f"{share(found)} in {seconds:,.1f} s" for seconds, found in points_of.items())])
    wide = max((len(row) for row in shown), default=1)
    shown = [[*row, *["–"] * (wide - len(row))] for row in shown]
    headings = ["method", *(f"{part:.0%} of the iterations" for part in _SHARES[-(wide - 1) :])]
    tables.append(Table("time-map", "MAP reached, and the training time it took", headings, shown))
    parts: list[drawing.Part] = [
        ("(a) by training points", by_size, "training points", "seconds", "xy"),
        ("(b) MAP reached", by_time, "seconds", "MAP", "x"),
    ]
    caption = "Training time: (a) against the number of training points, (b) with the MAP reached in it."
    return Shown(tables, {"time": (caption, drawing.side_by_side(parts))})
