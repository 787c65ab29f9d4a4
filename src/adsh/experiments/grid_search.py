"""Grid search: the options of each method and network that are best on validation items."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..config import recipe
from .cell import Cell, Options, public_options
from .experiment_config import ExperimentConfig
from .result_store import ResultStore

GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "lin_lin": {"penalty": (0.001, 0.01, 0.1)},
    "lin_v": {"penalty": (0.001, 0.01, 0.1)},
    "lfh": {"decay": (0.1, 0.5, 1.0)},
    "sdh": {"hash_weight": (1e-6, 1e-5, 1e-4), "hash_penalty": (1e-3, 1e-2)},
    "cosdish": {"rounds": (5, 10, 20)},
    # as fractions of the preset's learning rate: some methods diverge at it
    **{method: {"lr": (0.1, 0.3, 1.0)} for method in ("dsh", "dhn", "dpsh")},
    "adsh": {"gamma": (20.0, 200.0, 2000.0)},
}

_MAX_EXTENSIONS = 2  # learning rates beyond the end of the grid

RunCells = Callable[[Sequence[Cell]], None]  # runs those of the cells that have no record
Group = tuple[str, Any]  # a method and its network, which share their options


def select_options(
    cells: Sequence[Cell], config: ExperimentConfig, store: ResultStore, run: RunCells
) -> tuple[list[Cell], list[dict[str, Any]]]:
    """Give cells the options that are best on validation items.

    One code length and one seed decide for all cells of a method and network: the middle length and the first seed.
    The options of a deep method that samples serve its -D variant too.

    Args:
        cells: The cells whose options are selected.
        config: The configuration of the experiment.
        store: The records of the trials.
        run: Runs the trials that have no record.

    Returns:
        The cells with the selected options, and a summary of every trial.
    """
    examples = {_group(cell): cell for cell in reversed(cells)}
    trials = {group: _grid(cell, config) for group, cell in reversed(examples.items()) if _base(group[0]) in GRIDS}
    run([trial for group_trials in trials.values() for trial in group_trials])
    for _ in range(_MAX_EXTENSIONS):
        extensions = {group: _extend(group_trials, store) for group, group_trials in trials.items()}
        run([trial for group_trials in extensions.values() for trial in group_trials])
        trials = {group: [*group_trials, *extensions[group]] for group, group_trials in trials.items()}
    best: dict[Group, Options] = {}
    summary = []
    for group, group_trials in trials.items():
        scores = {cell: record["map_expected"] for cell, record in store.results(group_trials)}
        if scores:
            winner = max(scores, key=lambda cell: scores[cell])
            best[group] = winner.options
            summary += [
                {"method": cell.method, "bits": cell.bits, "seed": cell.seed, "options": dict(public_options(cell)),
                 "map_validation": score, "chosen": cell == winner}
                for cell, score in scores.items()
            ]  # fmt: skip
    return [replace(cell, options=_apply(cell, best.get(_group(cell)))) for cell in cells], summary


def _base(method: str) -> str:
    return method.removesuffix("_d")


def _group(cell: Cell) -> Group:
    network = cell.option("network")
    return cell.method if network is None else _base(cell.method), network


def _grid(cell: Cell, config: ExperimentConfig) -> list[Cell]:
    """Return a trial for each combination of the grid, the same for every experiment."""
    (method, network), lengths = _group(cell), sorted(config.bits)
    template = config.cell(
        method, lengths[(len(lengths) - 1) // 2], min(config.seeds), network=network, weights=cell.option("weights")
    )
    grid = dict(GRIDS[_base(method)])
    if "lr" in grid:
        default = recipe(config.preset, network).lr
        grid["lr"] = tuple(float(f"{fraction * default:.3g}") for fraction in grid["lr"])
    combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    return [
        replace(template, options=_merge(template.options, options), query_split="validation")
        for options in combinations
    ]


def _extend(trials: Sequence[Cell], store: ResultStore) -> list[Cell]:
    """Return one more learning rate if the best so far is an end of the grid; trials that failed do not count."""
    rates = sorted(rate for cell in trials if (rate := cell.option("lr")) is not None)
    scores = {cell.option("lr"): record["map_expected"] for cell, record in store.results(trials)}
    best = max(scores, key=lambda rate: scores[rate], default=None)
    if len(rates) < 2 or best not in (rates[0], rates[-1]):
        return []
    step = rates[0] / rates[1] if best == rates[0] else rates[-1] / rates[-2]
    return [replace(trials[0], options=_merge(trials[0].options, {"lr": float(f"{best * step:.3g}")}))]


def _merge(options: Options, others: dict[str, Any]) -> Options:
    return tuple(sorted((dict(options) | others).items()))


def _apply(cell: Cell, best: Options | None) -> Options:
    """Return the cell's options with the selected ones added; an option that the experiment itself varies stays."""
    return cell.options if best is None else _merge(best, dict(cell.options))
