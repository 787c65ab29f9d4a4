"""From the name of an experiment to its files: run the cells that have no record, then render all results."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import AdshWarning, FolderError, InputError
from ..evaluate import plots
from ..utils.earlier_names import accepts_earlier
from ..utils.files import check_writable
from .cell import Cell
from .experiment_config import ExperimentConfig
from .grid_search import RunCells, describe_tuning, select_options
from .output import write_experiment, write_file
from .page import page
from .provenance import check_same_data, describe_data
from .rendering import Rendering
from .result_store import ResultStore, rounded
from .runner import OnCell, Runner

EXPERIMENTS = {  # name -> module in figures/: the paper's first, then ours
    "table1": "table1", "table2": "table2", "top-k": "top_k", "pr": "precision_recall", "time": "training_time",
    "networks": "networks", "hyper": "hyperparameters", "cases": "case_study",
    "columns": "learned_vs_hashed", "ties": "ties", "scale": "scale", "new-items": "new_items",
    "classes": "classes",
}  # fmt: skip
PAGE, CHOICES = "index.html", "choices.json"

_SAY_TUNING = ("table1", "table2", "networks")  # how the options of each method were selected
_NOT_TUNED = ("hyper", "cases", "scale", "new-items", "classes")  # these do not compare methods by MAP or by time
_NEEDED_BYTES = 20_000_000

Plans = dict[str, list[Cell]]  # the cells of each experiment


@dataclass(frozen=True)
class Outcome:
    """The result of `reproduce`.

    Attributes:
        files: The files of each experiment.
        ran: How many cells were run.
        reused: How many cells had a record already.
        page: The HTML page, if one was written.
        failed: The cells that failed, each with the reason.
    """

    files: dict[str, list[Path]]
    ran: int
    reused: int
    page: Path | None
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """The earlier name of `reused`."""
        return self.reused


Outcome.__init__ = accepts_earlier(kept="reused")(Outcome.__init__)  # type: ignore[method-assign]  # the same signature


@accepts_earlier(setting="config", choose="tune")
def reproduce(
    what: Sequence[str],
    config: ExperimentConfig,
    out: str | Path,
    *,
    jobs: int = 1,
    tune: bool = False,
    run: bool = True,
    tex: bool = False,
    on_cell: OnCell | None = None,
) -> Outcome:
    """Run experiments, and write their tables, figures and rows.

    Cells that have a record are not run again, whichever process or experiment ran them. At the end, the records of the
    run are merged into `cells.jsonl`.

    Args:
        what: The names of the experiments; `all` for every one.
        config: The data set, methods and options.
        out: The folder to write to.
        jobs: How many cells to run in parallel, each in a process of its own.
        tune: Select the options of compared methods by a grid search on validation items first.
        run: Run the cells that have no record; else only render what there is.
        tex: Write the tables as LaTeX too.
        on_cell: Called at the start and after every cell: cells finished, cells in all, the cell.

    Returns:
        The files, the number of cells, and the cells that failed.
    """
    out, names = Path(out), resolve_names(what)
    if jobs < 1:
        raise InputError(f"jobs={jobs}: give at least 1")
    with plots.style():  # raises now if figures cannot be drawn, not after hours
        check_writable(out, _NEEDED_BYTES)
    store, runner = ResultStore(out), Runner(config, out, jobs, on_cell)
    plans = _plan(names, config)
    if not any(plans.values()):
        raise InputError(_explain_no_cells(names, config))
    check_same_data(out, describe_data(config, _unique_cells(plans)))
    if tune:
        plans, _ = _tune(plans, config, store, runner.run if run else _run_nothing)
    cells = _unique_cells(plans)
    reused = sum(map(store.has, cells))
    if run:
        runner.run(cells)
    if not any(map(store.has, cells)) and not runner.failed:
        raise InputError(f"{out} holds no cell of {', '.join(names)}: run them first, with the same options")
    files, page_path = _render(names, config, store, out, tune=tune, tex=tex)
    if run:
        _merge(store)
    return Outcome(files, runner.ran, reused, page_path, runner.failed)


def resolve_names(what: Sequence[str]) -> list[str]:
    """Return the names of experiments with `all` expanded; raise InputError for an unknown one."""
    unknown = [name for name in what if name not in (*EXPERIMENTS, "all")]
    if unknown or not what:
        problem = f"{unknown[0]!r} is no experiment" if unknown else "no experiment is named"
        raise InputError(f"{problem}: choose among {', '.join(EXPERIMENTS)}, or all")
    return list(EXPERIMENTS) if "all" in what else list(dict.fromkeys(what))


def experiment(name: str) -> Any:
    """Return the module of an experiment: TITLE, cells and render."""
    return import_module(f".figures.{EXPERIMENTS[name]}", __package__)


def _plan(names: Sequence[str], config: ExperimentConfig) -> Plans:
    return {name: experiment(name).cells(config) for name in names}


def _unique_cells(plans: Plans) -> list[Cell]:
    return list(dict.fromkeys(cell for cells in plans.values() for cell in cells))


def _tune(
    plans: Plans, config: ExperimentConfig, store: ResultStore, run: RunCells
) -> tuple[Plans, list[dict[str, Any]]]:
    """Select the options of the methods that experiments compare.

    Args:
        plans: The cells of each experiment.
        config: The configuration of the experiments.
        store: The records of the trials.
        run: Runs the trials that have no record.

    Returns:
        The plans with the selected options, and a summary of every trial.
    """
    tuned = {name: cells for name, cells in plans.items() if name not in _NOT_TUNED}
    cells = _unique_cells(tuned)
    selected, summary = select_options(cells, config, store, run)
    replacement = dict(zip(cells, selected, strict=True))
    return plans | {name: [replacement[cell] for cell in cells] for name, cells in tuned.items()}, summary


def _run_nothing(trials: Sequence[Cell]) -> None:
    """Leave trials without a record as they are."""


def _render(
    names: Sequence[str], config: ExperimentConfig, store: ResultStore, out: Path, *, tune: bool, tex: bool
) -> tuple[dict[str, list[Path]], Path | None]:
    """Render the experiments from the records of all methods, also of those that were not run now.

    Args:
        names: The experiments.
        config: The configuration of the experiments.
        store: The records.
        out: The folder to write to.
        tune: Render the cells with the options that a grid search selected.
        tex: Write the tables as LaTeX too.

    Returns:
        The files of each experiment, and the HTML page if there is one.
    """
    plans, summary = _plan(names, replace(config, methods=())), list[dict[str, Any]]()
    if tune:
        plans, summary = _tune(plans, config, store, _run_nothing)
        if summary:
            write_file(out / CHOICES, json.dumps(rounded(summary), indent=1) + "\n")
    files: dict[str, list[Path]] = {}
    renderings: dict[str, Rendering] = {}
    for name, cells in plans.items():
        results = list(store.results(cells))
        if tune and name in _SAY_TUNING:
            results = [(cell, record | {"tuned": describe_tuning(cell, summary)}) for cell, record in results]
        if results:
            renderings[name] = experiment(name).render(config, results)
            records = [record for _, record in results]
            files[name] = write_experiment(name, records, renderings[name], out, tex=tex)
    if not renderings or (len(names) == 1 and not any(rendering.cases for rendering in renderings.values())):
        return files, None
    titles = {name: experiment(name).TITLE for name in renderings}
    path = out / (PAGE if len(names) > 1 else f"{names[0]}.html")
    return files, write_file(path, page(config, titles, renderings))


def _merge(store: ResultStore) -> None:
    try:
        store.merge()
    except FolderError as problem:  # not an error here: the records are rendered, and can be read where they are
        warnings.warn(str(problem), AdshWarning, stacklevel=3)


def _explain_no_cells(names: Sequence[str], config: ExperimentConfig) -> str:
    """Say why a configuration has no cell, and which methods there are."""
    methods = [cell.method for cell in _unique_cells(_plan(names, replace(config, methods=())))]
    if not methods:
        return f"--max-points {config.max_points}: {', '.join(names)} has no size so small"
    flags = ", ".join(f"--method {name}" for name in config.methods)
    return f"{flags}: not in {', '.join(names)}, which has {', '.join(dict.fromkeys(methods))}"
