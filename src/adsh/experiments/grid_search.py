"""Options chosen on items that are neither queries nor database: the best of a small grid, by method and network."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..config import recipe
from .cell import Cell, Options, shown_options
from .experiment_config import ExperimentConfig
from .result_store import ResultStore

GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "lin_lin": {"penalty": (0.001, 0.01, 0.1)},
    "lin_v": {"penalty": (0.001, 0.01, 0.1)},
    "lfh": {"decay": (0.1, 0.5, 1.0)},
    "sdh": {"hash_weight": (1e-6, 1e-5, 1e-4), "hash_penalty": (1e-3, 1e-2)},
    "cosdish": {"rounds": (5, 10, 20)},
    **{method: {"lr": (0.1, 0.3, 1.0)} for method in ("dsh", "dhn", "dpsh")},  # of the preset's: some bear no more
    "adsh": {"gamma": (20.0, 200.0, 2000.0)},
}

_FURTHER = 2  # rates beyond the grid, at most, where its end is best

Run = Callable[[Sequence[Cell]], None]  # does those cells that are not done
Kind = tuple[str, Any]  # a method, and the network it has


def chosen(
    cells: Sequence[Cell], config: ExperimentConfig, store: ResultStore, run: Run
) -> tuple[list[Cell], list[dict[str, Any]]]:
    """The cells with the options that the validation items prefer, and what was chosen among.

    One length and one seed of each method and network decide for all of its cells: the middle length, and the first
    seed. What is chosen for a deep method that samples serves its -D variant too.
    """
    kinds = {_kind(cell): cell for cell in reversed(cells)}
    trials = {kind: _trials(cell, config) for kind, cell in reversed(kinds.items()) if _plain(kind[0]) in GRIDS}
    run([trial for of_kind in trials.values() for trial in of_kind])
    for _ in range(_FURTHER):
        beyond = {kind: _beyond(tried, store) for kind, tried in trials.items()}
        run([trial for of_kind in beyond.values() for trial in of_kind])
        trials = {kind: [*tried, *beyond[kind]] for kind, tried in trials.items()}
    best: dict[Kind, Options] = {}
    told = []
    for kind, tried in trials.items():
        figures = {cell: record["map_expected"] for cell, record in store.done(tried)}
        if figures:
            first = max(figures, key=lambda cell: figures[cell])
            best[kind] = first.options
            told += [
                {"method": cell.method, "bits": cell.bits, "seed": cell.seed, "options": dict(shown_options(cell)),
                 "map_validation": figure, "chosen": cell == first}
                for cell, figure in figures.items()
            ]  # fmt: skip
    return [replace(cell, options=_over(cell, best.get(_kind(cell)))) for cell in cells], told


def _plain(method: str) -> str:
    return method.removesuffix("_d")


def _kind(cell: Cell) -> Kind:
    network = cell.option("network")
    return cell.method if network is None else _plain(cell.method), network


def _trials(cell: Cell, config: ExperimentConfig) -> list[Cell]:
    """A cell for each combination of the grid, whichever experiment asks."""
    (method, network), lengths = _kind(cell), sorted(config.bits)
    model = config.cell(
        method, lengths[(len(lengths) - 1) // 2], min(config.seeds), network=network, weights=cell.option("weights")
    )
    grid = dict(GRIDS[_plain(method)])
    if "lr" in grid:
        usual = recipe(config.preset, network).lr
        grid["lr"] = tuple(float(f"{share * usual:.3g}") for share in grid["lr"])
    combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    return [
        replace(model, options=tuple(sorted((dict(model.options) | options).items())), asking="validation")
        for options in combinations
    ]


def _beyond(tried: Sequence[Cell], store: ResultStore) -> list[Cell]:
    """One rate more, where the best so far is the smallest or the largest of those tried; one that failed is none."""
    rates = sorted(rate for cell in tried if (rate := cell.option("lr")) is not None)
    figures = {cell.option("lr"): record["map_expected"] for cell, record in store.done(tried)}
    best = max(figures, key=lambda rate: figures[rate], default=None)
    if len(rates) < 2 or best not in (rates[0], rates[-1]):
        return []
    step = rates[0] / rates[1] if best == rates[0] else rates[-1] / rates[-2]
    further = tuple(sorted((dict(tried[0].options) | {"lr": float(f"{best * step:.3g}")}).items()))
    return [replace(tried[0], options=further)]


def _over(cell: Cell, best: Options | None) -> Options:
    """The cell's options with the chosen ones added; one that the experiment itself varies stays."""
    return cell.options if best is None else tuple(sorted((dict(best) | dict(cell.options)).items()))
