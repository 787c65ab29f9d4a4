"""Run the cells that have no record, one after the other or in parallel; a cell that fails does not stop the others."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from threading import Thread

from numpy.linalg import LinAlgError

from ..errors import AdshError, first_line
from .cell import Cell, Record
from .experiment_config import ExperimentConfig
from .experiment_data import ExperimentData, open_data
from .provenance import check_same_data, describe_data, store_facts
from .result_store import ResultStore

OnCell = Callable[[int, int, Cell | None], None]  # cells finished, cells in all, the one that finished last

_MACHINE_ERRORS = (RuntimeError, ArithmeticError, MemoryError, LinAlgError)  # for instance, a GPU out of memory
_MEASURES = {  # name in Cell.measure -> module:function
    "evaluation": "measure:evaluate_cell", "cases": "figures.case_study:measure", "scale": "figures.scale:measure",
    "new-items": "figures.new_items:measure", "timed": "figures.training_time:measure",
    "classes": "figures.classes:measure",
}  # fmt: skip


def measure(cell: Cell, data: ExperimentData) -> Record:
    """Run the measurement of a cell and return its record."""
    module, _, function = _MEASURES[cell.measure].partition(":")
    record: Record = getattr(import_module(f".{module}", __package__), function)(cell, data)
    return record


class Runner:
    """Run cells that have no record, and store the records.

    Args:
        config: The configuration of the experiments.
        out: The folder of the records.
        jobs: How many cells to run in parallel, each in a process of its own.
        on_cell: Called at the start and after every cell.

    Attributes:
        ran: How many cells were run.
        failed: The cells that failed, each with the reason.
    """

    def __init__(self, config: ExperimentConfig, out: Path, jobs: int = 1, on_cell: OnCell | None = None) -> None:
        self.config, self.out, self.store, self.jobs = config, out, ResultStore(out), jobs
        self.ran, self.failed = 0, dict[str, str]()
        self._notify = on_cell or (lambda finished, total, cell: None)

    def run(self, cells: Sequence[Cell]) -> None:
        """Run those of the cells that have no record."""
        missing = [cell for cell in cells if not self.store.has(cell)]
        if not missing:
            return
        facts = describe_data(self.config, missing, open_data(self.config))  # raises if the data cannot be opened
        check_same_data(self.out, facts)
        self._notify(0, len(missing), None)
        for finished, (cell, record, reason) in enumerate(self._results(missing), 1):
            if reason is not None:
                self.failed[cell.name] = reason
            else:
                store_facts(self.out, facts)
                self.store.write(cell, record)
                self.ran += 1
            self._notify(finished, len(missing), cell)

    def _results(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Record, str | None]]:
        if self.jobs == 1:
            data = open_data(self.config)
            for cell in cells:
                yield cell, *_attempt(cell, data)
            return
        pool = ProcessPoolExecutor(self.jobs, get_context("spawn"), _start_worker, (self.config, self.jobs))
        try:
            pending: dict[Future[tuple[Record, str | None]], Cell] = {
                pool.submit(_run_in_worker, cell, self.config): cell for cell in cells
            }
            while pending:
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(future), *future.result()
        except BrokenProcessPool:
            raise AdshError(
                f"one of the {self.jobs} processes was killed, perhaps for lack of memory: run the same command again, "
                "with fewer --jobs; finished cells are not run again"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(config: ExperimentConfig, jobs: int) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # on Ctrl-C it ends silently: the main process reports
    Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
    open_data(config)


def _exit_with_parent(parent: int) -> None:
    """End this process as soon as the main process has ended, for whatever reason."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _run_in_worker(cell: Cell, config: ExperimentConfig) -> tuple[Record, str | None]:
    return _attempt(cell, open_data(config))


def _attempt(cell: Cell, data: ExperimentData) -> tuple[Record, str | None]:
    """Return the record; or the reason if the data, an option or the machine make the measurement impossible."""
    try:
        return measure(cell, data), None
    except AdshError as problem:
        return {}, first_line(problem)
    except _MACHINE_ERRORS as problem:
        return {}, f"{type(problem).__name__}: {first_line(problem)}"
