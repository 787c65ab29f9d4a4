"""Grid search: the options of each method and network that are best on validation items."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..methods import DEEP
from .cell import Cell, Options, public_options
from .experiment_config import ExperimentConfig
from .iterations import rate_of
from .result_store import ResultStore
from .summaries import mean

Grid = dict[str, tuple[Any, ...]]

GRIDS: dict[str, Grid] = {
    "lin_lin": {"penalty": (0.001, 0.01, 0.1)},
    "lin_v": {"penalty": (0.001, 0.01, 0.1)},
    "lfh": {"variance": (30.0, 300.0, 3000.0)},
    "lfh_decay": {"decay": (0.1, 0.5, 1.0)},
    "sdh": {"hash_weight": (1e-6, 1e-5, 1e-4), "hash_penalty": (1e-3, 1e-2)},
    "cosdish": {"rounds": (5, 10, 20)},
    # as fractions of the learning rate that the method has without: some diverge at the preset's
    **{method: {"lr": (0.1, 0.3, 1.0)} for method in ("dsh", "dhn", "dpsh_batch")},
    "dpsh": {"lr": (1.0, 3.0, 10.0)},
}
# The same number of trials each: one option after the other, with the best so far; None is the preset's value.
STAGES: dict[str, Grid] = {
    "adsh": {"lr": (0.3, 1.0, 3.0), "ema_decay": (None, 0.95, 0.99), "gamma": (None, 20.0, 2000.0)},
    "classifier": {"lr": (0.3, 1.0, 3.0), "ema_decay": (None, 0.95, 0.99), "smoothing": (None, 0.05, 0.1)},
}
RATES: dict[str, Grid] = {"paper": {"lr": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)}}  # of a preset: the paper's own range

_OPEN_ENDED = ("lr", "penalty", "variance")  # where an end of the grid is best, values beyond it are tried
_MAX_EXTENSIONS = 4  # of these values
_TUNING_SEEDS = 3  # of methods with a network: their figures vary most from seed to seed

RunCells = Callable[[Sequence[Cell]], None]  # runs those of the cells that have no record
Group = tuple[str, Any]  # a method and its network, which share their options
Summary = list[dict[str, Any]]


def select_options(
    cells: Sequence[Cell], config: ExperimentConfig, store: ResultStore, run: RunCells
) -> tuple[list[Cell], Summary]:
    """Give cells the options that are best on validation items.

    One code length decides for all cells of a method and network: the middle one, by the mean over the first three
    seeds for methods with a network and by the first seed for others. The options of a deep method that samples serve
    its -D variant too.

    Args:
        cells: The cells whose options are selected.
        config: The configuration of the experiment.
        store: The records of the trials.
        run: Runs the trials that have no record.

    Returns:
        The cells with the selected options, and a summary of every trial.
    """
    examples = {_group(cell): cell for cell in reversed(cells)}
    searches = {
        group: _Search(cell, config, store) for group, cell in reversed(examples.items()) if _grids(group, config)
    }
    for stage in range(max((len(search.grids) for search in searches.values()), default=0)):
        active = [search for search in searches.values() if stage < len(search.grids)]
        for search in active:
            search.start(stage)
        run([trial for search in active for trial in search.trials])
        for _ in range(_MAX_EXTENSIONS):
            run([trial for search in active for trial in search.extend()])
        for search in active:
            search.select()
    best = {group: search.best for group, search in searches.items() if search.best is not None}
    summary = [row for search in searches.values() for row in search.summary()]
    return [replace(cell, options=_apply(cell, best.get(_group(cell)))) for cell in cells], summary


def describe_tuning(cell: Cell, summary: Summary) -> str:
    """Say how a cell's options were selected, from the trials of its method and network.

    Args:
        cell: A cell of `select_options`.
        summary: The summary of the trials that it returned.

    Returns:
        The selected value of each option and those it was selected from; "defaults" where nothing was tried.
    """
    method, network = _group(cell)
    trials = [trial for trial in summary if (trial["method"], trial["options"].get("network")) == (method, network)]
    if not trials:
        return "defaults"
    chosen = next(trial["options"] for trial in trials if trial["chosen"])
    parts = []
    for name in dict.fromkeys(name for trial in trials for name in trial["options"]):
        tried = {trial["options"].get(name) for trial in trials}
        if len(tried) > 1:
            values = [f"{value:g}" for value in sorted(value for value in tried if value is not None)]
            values = ["preset's"] * (None in tried) + values
            best = chosen.get(name)
            parts.append(f"{name} {'as the preset' if best is None else f'{best:g}'} of {', '.join(values)}")
    seeds = trials[0]["seeds"]
    runs = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    return f"{'; '.join(parts)} on validation items, {trials[0]['bits']} bits, {runs}"


class _Search:
    """The search of one method and network: its trials, stage by stage.

    Args:
        cell: A cell of the method.
        config: The configuration of the experiment.
        store: The records of the trials.
    """

    def __init__(self, cell: Cell, config: ExperimentConfig, store: ResultStore) -> None:
        self.group, lengths = _group(cell), sorted(config.bits)
        method, network = self.group
        self.grids = _grids(self.group, config)
        self._template = replace(
            config.cell(
                method, lengths[(len(lengths) - 1) // 2], min(config.seeds), network=network,
                weights=cell.option("weights"),
            ), query_split="validation",
        )  # fmt: skip
        is_deep = method == "adsh" or method in DEEP
        self._seeds = sorted(config.seeds)[: _TUNING_SEEDS if is_deep else 1]
        self._bounded = config.preset in RATES and _base(method) == "adsh"
        self._rate = rate_of(method, config, network) if is_deep and not self._bounded else 1.0
        self._store, self._seen = store, dict[Options, None]()
        self._grid: Grid = {}
        self._candidates: list[Options] = []
        self.best: Options | None = None

    @property
    def trials(self) -> list[Cell]:
        """Return a trial for each candidate of this stage and each seed."""
        return [trial for options in self._candidates for trial in self._trials_of(options)]

    def start(self, stage: int) -> None:
        """Make the candidates of a stage: every combination of its grid, with the options selected before."""
        self._grid = grid = dict(self.grids[stage])
        if "lr" in grid:
            grid["lr"] = tuple(float(f"{fraction * self._rate:.3g}") for fraction in grid["lr"])
        base = self._template.options if self.best is None else self.best
        combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        self._candidates = [_merge(base, options) for options in combinations]

    def extend(self) -> list[Cell]:
        """Add a value if the best so far is an end of an open-ended grid, and return its trials."""
        name = next((option for option in _OPEN_ENDED if option in self._grid), None)
        if name is None or self._bounded:
            return []
        tried = sorted({dict(options)[name] for options in self._candidates})
        scores = {dict(options)[name]: score for options, score in self._scores().items()}
        best = max(scores, key=lambda value: scores[value], default=None)
        if best not in (tried[0], tried[-1]):
            return []
        step = tried[0] / tried[1] if best == tried[0] else tried[-1] / tried[-2]
        added = _merge(self._candidates[0], {name: float(f"{best * step:.3g}")})
        self._candidates.append(added)
        return self._trials_of(added)

    def select(self) -> None:
        """Keep the best of this stage."""
        self._seen |= dict.fromkeys(self._candidates)
        scores = self._scores()
        if scores:
            self.best = max(scores, key=lambda options: scores[options])

    def summary(self) -> Summary:
        """Return a row for each candidate that was tried."""
        rows = []
        for options in self._seen:
            scores = self._validation(options)
            if scores:
                trial = replace(self._template, options=options)
                rows.append({
                    "method": trial.method, "bits": trial.bits, "seed": min(scores), "seeds": sorted(scores),
                    "options": dict(public_options(trial)), "map_validation": mean(list(scores.values())),
                    "chosen": options == self.best,
                })  # fmt: skip
        return rows

    def _trials_of(self, options: Options) -> list[Cell]:
        return [replace(self._template, options=options, seed=seed) for seed in self._seeds]

    def _validation(self, options: Options) -> dict[int, float]:
        """Return MAP of a candidate by seed, where there is a record."""
        records = self._store.results(self._trials_of(options))
        return {cell.seed: record["map_expected"] for cell, record in records}

    def _scores(self) -> dict[Options, float]:
        """Return the mean of each candidate of this stage; those that failed with some seed do not count."""
        found = {options: self._validation(options) for options in self._candidates}
        most = max((len(scores) for scores in found.values()), default=0)
        return {options: mean(list(scores.values())) for options, scores in found.items() if len(scores) == most > 0}


def _base(method: str) -> str:
    return method.removesuffix("_d")


def _grids(group: Group, config: ExperimentConfig) -> list[Grid]:
    """Return the grids of a method, one for each stage."""
    method = _base(group[0])
    if method == "adsh" and config.preset in RATES:
        return [RATES[config.preset]]
    if method in STAGES:
        return [{name: values} for name, values in STAGES[method].items()]
    return [GRIDS[method]] if method in GRIDS else []


def _group(cell: Cell) -> Group:
    network = cell.option("network")
    own = network is None or _base(cell.method) in STAGES  # compared with ADSH: tuned on as many items as it
    return cell.method if own else _base(cell.method), network


def _merge(options: Options, others: dict[str, Any]) -> Options:
    merged = dict(options) | {name: value for name, value in others.items() if value is not None}
    return tuple(sorted(merged.items()))


def _apply(cell: Cell, best: Options | None) -> Options:
    """Return the cell's options with the selected ones added; an option that the experiment itself varies stays."""
    return cell.options if best is None else _merge(best, dict(cell.options))
