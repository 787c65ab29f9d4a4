"""From the name of an experiment to its files: the cells that are missing are run, then everything is shown anew."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import AdshWarning, FolderError, InputError
from ..evaluate import plots
from ..utils.files import check_writable
from .cell import Cell
from .experiment_config import ExperimentConfig
from .grid_search import Run, chosen
from .page import page
from .provenance import check_same, facts
from .rendering import Rendering
from .result_store import ResultStore, rounded
from .runner import OnCell, Runner
from .tables import FORMATS

EXPERIMENTS = {  # the paper's, then ours
    "table1": "table1", "table2": "table2", "top-k": "top_k", "pr": "precision_recall", "time": "training_time",
    "networks": "networks", "hyper": "hyperparameters", "cases": "case_study",
    "columns": "learned_vs_hashed", "ties": "ties", "scale": "scale", "new-items": "new_items",
}  # fmt: skip
PAGE, CHOICES = "index.html", "choices.json"

_AS_THE_PRESET = ("hyper", "cases", "scale", "new-items")  # what compares methods by MAP or time may choose for them

_IN_ROWS = (  # of every experiment, None where it has no such figure
    "method", "bits", "seed", "map_expected", "map_stable", "map_network", "paper", "seconds", "device", "commit"
)  # fmt: skip
_LATER_IN_ROWS = (
    "network", "preset", "options", "points", "protocol", "map_lowest", "map_highest", "distinct_codes", "database",
    "k", "new", "labelled", "unlabelled", "learned", "unseen_labelled", "unseen_unlabelled", "rows",
)  # fmt: skip
_NOT_IN_ROWS = ("ks", "precision", "radius_precision", "radius_recall", "cases")  # curves and pictures: in the cells

Plans = dict[str, list[Cell]]


@dataclass(frozen=True)
class Outcome:
    """What a run left: files by experiment, how many cells it ran itself, and those that failed, with the reason."""

    files: dict[str, list[Path]]
    ran: int
    kept: int
    page: Path | None
    failed: dict[str, str] = field(default_factory=dict)


def reproduce(
    what: Sequence[str],
    config: ExperimentConfig,
    out: str | Path,
    *,
    jobs: int = 1,
    choose: bool = False,
    run: bool = True,
    tex: bool = False,
    on_cell: OnCell | None = None,
) -> Outcome:
    """Runs the experiments named, `all` for every one, and writes tables, figures and rows to `out`.

    Cells that are done are not run again, whoever ran them. `jobs` run side by side, each in a process of its own.
    With `choose`, the options of methods that are compared are first chosen on validation items. Without `run`, only
    what is done is shown. With `tex`, tables are written as LaTeX too.
    """
    out = Path(out)
    named = check(what)
    if jobs < 1:
        raise InputError(f"jobs={jobs}: give at least 1")
    with plots.style():  # says now that figures cannot be drawn, not after hours
        check_writable(out, 20_000_000)
    store, runner = ResultStore(out), Runner(config, out, jobs, on_cell)
    plans = {name: experiment(name).cells(config) for name in named}
    if not any(plans.values()):
        raise InputError(_nothing_left(named, config))
    check_same(out, facts(config, (cell for planned in plans.values() for cell in planned)))
    if choose:
        plans, _ = _chosen(plans, config, store, runner.run if run else _not_now)
    cells = list(dict.fromkeys(cell for planned in plans.values() for cell in planned))
    kept = sum(store.has(cell) for cell in cells)
    if run:
        runner.run(cells)
    if not any(map(store.has, cells)) and not runner.failed:
        raise InputError(f"{out} holds no cell of {', '.join(named)}: run them first, with the same options")
    if config.methods:  # the others are shown too, as far as they are done
        plans = {name: experiment(name).cells(replace(config, methods=())) for name in named}
    if choose:
        plans, told = _chosen(plans, config, store, _not_now)
        if told:
            _write(out / CHOICES, json.dumps(rounded(told), indent=1) + "\n")
    files, shown = {}, {}
    for name, planned in plans.items():
        done = list(store.done(planned))
        if done:
            shown[name] = experiment(name).show(config, done)
            files[name] = list(_written(name, [record for _, record in done], shown[name], out, tex=tex))
    at = None
    if shown and (len(named) > 1 or any(of_one.cases for of_one in shown.values())):
        at = out / (PAGE if len(named) > 1 else f"{named[0]}.html")
        titles = {name: experiment(name).TITLE for name in shown}
        _write(at, page(config, titles, shown))
    if run:
        try:
            store.merge()
        except FolderError as problem:  # what was run is shown already, and is read from where it lies
            warnings.warn(str(problem), AdshWarning, stacklevel=2)
    return Outcome(files, runner.ran, kept, at, runner.failed)


def _chosen(plans: Plans, config: ExperimentConfig, store: ResultStore, run: Run) -> tuple[Plans, list[dict[str, Any]]]:
    """The plans with the options that validation items prefer, where methods are compared; and all that was tried."""
    to_choose = {name: cells for name, cells in plans.items() if name not in _AS_THE_PRESET}
    every = list(dict.fromkeys(cell for cells in to_choose.values() for cell in cells))
    better, told = chosen(every, config, store, run)
    now = dict(zip(every, better, strict=True))
    return plans | {name: [now[cell] for cell in cells] for name, cells in to_choose.items()}, told


def _nothing_left(named: Sequence[str], config: ExperimentConfig) -> str:
    """Why no cell is left, and what there would be."""
    every = [cell.method for name in named for cell in experiment(name).cells(replace(config, methods=()))]
    if not every:
        return f"--largest {config.largest}: {', '.join(named)} has no size so small"
    given = ", ".join(f"--method {name}" for name in config.methods)
    return f"{given}: not in {', '.join(named)}, which has {', '.join(dict.fromkeys(every))}"


def _not_now(trials: Sequence[Cell]) -> None:
    """What is not done stays so."""


def check(what: Sequence[str]) -> list[str]:
    """The experiments of these names; or an error that lists what there is."""
    unknown = [name for name in what if name not in (*EXPERIMENTS, "all")]
    if unknown or not what:
        given = f"{unknown[0]!r} is no experiment" if unknown else "no experiment is named"
        raise InputError(f"{given}: choose among {', '.join(EXPERIMENTS)}, or all")
    return list(EXPERIMENTS) if "all" in what else list(dict.fromkeys(what))


def experiment(name: str) -> Any:
    """The module of an experiment: TITLE, cells and show."""
    return import_module(f".figures.{EXPERIMENTS[name]}", __package__)


def _written(name: str, records: Sequence[dict[str, Any]], shown: Rendering, out: Path, *, tex: bool) -> Iterator[Path]:
    """Rows, tables and figures of an experiment; their paths."""
    rows = [_row(record) for record in (records if shown.rows is None else shown.rows)]
    yield _write(out / f"{name}.json", "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    pictures = [f"![{caption}]({figure}.png)\n\n*{caption}*\n" for figure, (caption, _) in shown.figures.items()]
    for ending, text in FORMATS.items():
        if ending == "tex" and not tex:
            continue
        parts = [text(table) for table in shown.tables] + (pictures if ending == "md" else [])
        yield _write(out / f"{name}.{ending}", "\n".join(parts))
    for figure, (_, drawn) in shown.figures.items():
        yield _write(out / f"{figure}.png", plots.as_png(drawn))


def _row(record: dict[str, Any]) -> dict[str, Any]:
    """The record without its curves and cases, its keys in the order that every file of rows has them."""
    first: dict[str, Any] = dict.fromkeys(_IN_ROWS)
    later = {key: record[key] for key in (*_LATER_IN_ROWS, *sorted(record)) if key in record}
    return first | {key: value for key, value in later.items() if key not in _NOT_IN_ROWS}


def _write(path: Path, content: str | bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as problem:
        raise FolderError(f"cannot write {path}: {problem.strerror or problem}") from None
    return path
