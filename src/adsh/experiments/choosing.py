"""Options chosen on items that are neither queries nor database: the best of a small grid, by method and network."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..config import recipe
from .cell import Cell, Options
from .ledger import Ledger

GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "lin_lin": {"penalty": (0.001, 0.01, 0.1)},
    "lin_v": {"penalty": (0.001, 0.01, 0.1)},
    "lfh": {"decay": (0.1, 0.5, 1.0)},
    "sdh": {"hash_weight": (1e-6, 1e-5, 1e-4), "hash_penalty": (1e-3, 1e-2)},
    "cosdish": {"rounds": (5, 10, 20)},
    **{method: {"lr": (0.1, 0.3, 1.0)} for method in ("dsh", "dhn", "dpsh")},  # of the preset's: some bear no more
    "adsh": {"gamma": (20.0, 200.0, 2000.0)},
}

Run = Callable[[Sequence[Cell]], None]  # does those cells that are not done
Kind = tuple[str, Any]  # a method, whether it samples or not, and the network it has


def chosen(cells: Sequence[Cell], ledger: Ledger, run: Run) -> tuple[list[Cell], list[dict[str, Any]]]:
    """The cells with the options that the validation items prefer, and what was chosen among.

    One length and one seed of each method and network decide for all of its cells, those of its -D variant too: the
    middle length, the first seed, and the longest training.
    """
    trials = {kind: _trials(mine) for kind, mine in _by_kind(cells).items()}
    run([trial for of_kind in trials.values() for trial in of_kind])
    best: dict[Kind, Options] = {}
    told = []
    for kind, tried in trials.items():
        figures = {cell: record["map_expected"] for cell, record in ledger.done(tried)}
        if figures:
            first = max(figures, key=lambda cell: figures[cell])
            best[kind] = first.options
            told += [
                {"method": cell.method, "bits": cell.bits, "seed": cell.seed, "options": dict(cell.options),
                 "map_validation": figure, "chosen": cell == first}
                for cell, figure in figures.items()
            ]  # fmt: skip
    return [replace(cell, options=_over(cell, best.get(_kind(cell)))) for cell in cells], told


def _kind(cell: Cell) -> Kind:
    return cell.method.removesuffix("_d"), cell.option("network")


def _by_kind(cells: Sequence[Cell]) -> dict[Kind, list[Cell]]:
    groups: dict[Kind, list[Cell]] = {}
    for cell in cells:
        kind = _kind(cell)
        if cell.measure == "judged" and kind[0] in GRIDS:
            groups.setdefault(kind, []).append(cell)
    return groups


def _trials(mine: Sequence[Cell]) -> list[Cell]:
    lengths = sorted({cell.bits for cell in mine})
    seed = min(cell.seed for cell in mine)
    alike = [cell for cell in mine if cell.bits == lengths[(len(lengths) - 1) // 2] and cell.seed == seed]
    model = max(alike, key=lambda cell: (not cell.method.endswith("_d"), cell.option("outer") or math.inf))
    grid = dict(GRIDS[_kind(model)[0]])
    if "lr" in grid:
        usual = recipe(model.option("preset"), model.option("network")).lr
        grid["lr"] = tuple(float(f"{share * usual:.3g}") for share in grid["lr"])
    combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    return [
        replace(model, options=tuple(sorted((dict(model.options) | options).items())), asking="validation")
        for options in combinations
    ]


def _over(cell: Cell, best: Options | None) -> Options:
    """The cell's options with the chosen ones added; one that the experiment itself varies stays."""
    return cell.options if best is None else tuple(sorted((dict(best) | dict(cell.options)).items()))
