"""From the name of an experiment to its files: the cells that are missing are run, then everything is shown anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ..errors import AdshError, FolderError, InputError, first_line
from ..evaluate import plots
from ..files import check_writable
from .cell import Cell
from .choosing import chosen
from .ledger import Ledger, rounded
from .page import page
from .setting import Data, Setting, data_of
from .shown import Shown
from .tables import FORMATS

EXPERIMENTS = {  # the paper's, then ours
    "table1": "table1", "table2": "table2", "top-k": "top_k", "pr": "precision_recall", "time": "training_time",
    "networks": "networks", "hyper": "hyper", "cases": "cases",
    "columns": "columns", "ties": "ties", "scale": "scale", "new-items": "new_items",
}  # fmt: skip
PAGE, CHOICES = "index.html", "choices.json"

_AS_THE_PRESET = ("hyper", "cases", "scale", "new-items")  # what compares methods by MAP or time may choose for them

_MEASURES = {"judged": "measure:judged", "cases": "cases:measured", "scale": "scale:measured",
             "new-items": "new_items:measured", "timed": "training_time:timed"}  # fmt: skip
_IN_ROWS = (  # of every experiment, None where it has no such figure
    "method", "bits", "seed", "map_expected", "map_stable", "map_network", "paper", "seconds", "device", "commit"
)  # fmt: skip
_NOT_IN_ROWS = ("ks", "precision", "radius_precision", "radius_recall", "cases")  # curves and pictures: in the cells

OnCell = Callable[[int, int, Cell | None], None]  # done, of how many, the one just finished


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
    setting: Setting,
    out: str | Path,
    *,
    jobs: int = 1,
    choose: bool = False,
    run: bool = True,
    on_cell: OnCell | None = None,
) -> Outcome:
    """Runs the experiments named, `all` for every one, and writes tables, figures and rows to `out`.

    Cells that are done are not run again, whoever ran them. `jobs` run side by side, each in a process of its own.
    With `choose`, the options of methods that are compared are first chosen on validation items. Without `run`, only
    what is done is shown.
    """
    out = Path(out)
    named = check(what)
    if jobs < 1:
        raise InputError(f"jobs={jobs}: give at least 1")
    with plots.style():  # says now that figures cannot be drawn, not after hours
        check_writable(out, 20_000_000)
    ledger, runner = Ledger(out), _Runner(setting, Ledger(out), jobs, on_cell)
    plans = {name: experiment(name).cells(setting) for name in named}
    if choose:
        to_choose = {name: cells for name, cells in plans.items() if name not in _AS_THE_PRESET}
        every = list(dict.fromkeys(cell for cells in to_choose.values() for cell in cells))
        better, told = chosen(every, setting, ledger, runner.run if run else lambda trials: None)
        if told:
            _write(out / CHOICES, json.dumps(rounded(told), indent=1) + "\n")
        now = dict(zip(every, better, strict=True))
        plans |= {name: [now[cell] for cell in cells] for name, cells in to_choose.items()}
    cells = list(dict.fromkeys(cell for planned in plans.values() for cell in planned))
    kept = sum(ledger.has(cell) for cell in cells)
    if run:
        runner.run(cells)
    if not any(map(ledger.has, cells)) and not runner.failed:
        raise InputError(f"{out} holds no cell of {', '.join(named)}: run them first, with the same options")
    files, shown = {}, {}
    for name, planned in plans.items():
        done = list(ledger.done(planned))
        if done:
            shown[name] = experiment(name).show(setting, done)
            files[name] = list(_written(name, [record for _, record in done], shown[name], out))
    at = None
    if len(named) > 1 and shown:
        at = out / PAGE
        titles = {name: experiment(name).TITLE for name in shown}
        _write(at, page(setting, titles, shown))
    return Outcome(files, runner.ran, kept, at, runner.failed)


def check(what: Sequence[str]) -> list[str]:
    """The experiments of these names; or an error that lists what there is."""
    unknown = [name for name in what if name not in (*EXPERIMENTS, "all")]
    if unknown or not what:
        given = f"{unknown[0]!r} is no experiment" if unknown else "no experiment is named"
        raise InputError(f"{given}: choose among {', '.join(EXPERIMENTS)}, or all")
    return list(EXPERIMENTS) if "all" in what else list(dict.fromkeys(what))


def experiment(name: str) -> Any:
    """The module of an experiment: TITLE, cells and show."""
    return import_module(f".{EXPERIMENTS[name]}", __package__)


def measure(cell: Cell, data: Data) -> dict[str, Any]:
    """The record of a cell."""
    module, _, function = _MEASURES[cell.measure].partition(":")
    record: dict[str, Any] = getattr(import_module(f".{module}", __package__), function)(cell, data)
    return record


class _Runner:
    """Runs what is not done yet, one after the other or side by side; a cell that fails leaves the others alone."""

    def __init__(self, setting: Setting, ledger: Ledger, jobs: int, on_cell: OnCell | None) -> None:
        self.setting, self.ledger, self.jobs = setting, ledger, jobs
        self.ran, self.failed = 0, dict[str, str]()
        self._tell = on_cell or (lambda done, total, cell: None)

    def run(self, cells: Sequence[Cell]) -> None:
        missing = [cell for cell in cells if not self.ledger.has(cell)]
        if not missing:
            return
        self._tell(0, len(missing), None)
        for place, (cell, record, problem) in enumerate(self._results(missing), 1):
            if problem is not None:
                self.failed[cell.name] = problem
            else:
                self.ledger.write(cell, record)
                self.ran += 1
            self._tell(place, len(missing), cell)

    def _results(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any], str | None]]:
        if self.jobs == 1:
            data = data_of(self.setting)
            for cell in cells:
                yield cell, *_attempt(cell, data)
            return
        pool = ProcessPoolExecutor(self.jobs, get_context("spawn"), _begin, (self.setting, self.jobs))
        try:
            waiting: dict[Future[tuple[dict[str, Any], str | None]], Cell] = {
                pool.submit(_in_worker, cell, self.setting): cell for cell in cells
            }
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), *future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin(setting: Setting, jobs: int) -> None:
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
    data_of(setting)


def _in_worker(cell: Cell, setting: Setting) -> tuple[dict[str, Any], str | None]:
    return _attempt(cell, data_of(setting))


def _attempt(cell: Cell, data: Data) -> tuple[dict[str, Any], str | None]:
    """The record; or, where the data or an option make it impossible, the reason."""
    try:
        return measure(cell, data), None
    except AdshError as problem:
        return {}, first_line(problem)


def _written(name: str, records: Sequence[dict[str, Any]], shown: Shown, out: Path) -> Iterator[Path]:
    """Rows, tables and figures of an experiment; their paths."""
    every: dict[str, Any] = dict.fromkeys(_IN_ROWS)
    rows = [every | {key: value for key, value in record.items() if key not in _NOT_IN_ROWS} for record in records]
    yield _write(out / f"{name}.json", "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    pictures = [f"![{caption}]({figure}.png)\n\n*{caption}*\n" for figure, (caption, _) in shown.figures.items()]
    for ending, text in FORMATS.items():
        parts = [text(table) for table in shown.tables] + (pictures if ending == "md" else [])
        yield _write(out / f"{name}.{ending}", "\n".join(parts))
    for figure, (_, drawn) in shown.figures.items():
        yield _write(out / f"{figure}.png", plots.as_png(drawn))


def _write(path: Path, content: str | bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as problem:
        raise FolderError(f"cannot write {path}: {problem.strerror or problem}") from None
    return path
