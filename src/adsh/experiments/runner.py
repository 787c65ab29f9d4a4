"""Cells that are not done yet, run one after the other or side by side; what fails leaves the others alone."""

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
from typing import Any

from numpy.linalg import LinAlgError

from ..errors import AdshError, first_line
from .cell import Cell
from .experiment_config import ExperimentConfig, ExperimentData, open_data
from .provenance import check_same, facts, write_down
from .result_store import ResultStore

OnCell = Callable[[int, int, Cell | None], None]  # done, of how many, the one just finished

_OF_THE_MACHINE = (RuntimeError, ArithmeticError, MemoryError, LinAlgError)  # a GPU's memory, say: the others go on
_MEASURES = {"judged": "measure:judged", "cases": "figures.case_study:measured", "scale": "figures.scale:measured",
             "new-items": "figures.new_items:measured", "timed": "figures.training_time:timed"}  # fmt: skip


def measure(cell: Cell, data: ExperimentData) -> dict[str, Any]:
    """The record of a cell."""
    module, _, function = _MEASURES[cell.measure].partition(":")
    record: dict[str, Any] = getattr(import_module(f".{module}", __package__), function)(cell, data)
    return record


class Runner:
    """Runs what is not done yet, one after the other or side by side; a cell that fails leaves the others alone."""

    def __init__(self, config: ExperimentConfig, out: Path, jobs: int, on_cell: OnCell | None) -> None:
        self.config, self.out, self.store, self.jobs = config, out, ResultStore(out), jobs
        self.ran, self.failed = 0, dict[str, str]()
        self._tell = on_cell or (lambda done, total, cell: None)

    def run(self, cells: Sequence[Cell]) -> None:
        """Those of the cells that are missing; what they gave is in the store, and why some failed in `failed`."""
        missing = [cell for cell in cells if not self.store.has(cell)]
        if not missing:
            return
        now = facts(self.config, missing, open_data(self.config))  # says here what is wrong with the data
        check_same(self.out, now)
        self._tell(0, len(missing), None)
        for place, (cell, record, problem) in enumerate(self._results(missing), 1):
            if problem is not None:
                self.failed[cell.name] = problem
            else:
                write_down(self.out, now)
                self.store.write(cell, record)
                self.ran += 1
            self._tell(place, len(missing), cell)

    def _results(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any], str | None]]:
        if self.jobs == 1:
            data = open_data(self.config)
            for cell in cells:
                yield cell, *_attempt(cell, data)
            return
        pool = ProcessPoolExecutor(self.jobs, get_context("spawn"), _begin, (self.config, self.jobs))
        try:
            waiting: dict[Future[tuple[dict[str, Any], str | None]], Cell] = {
                pool.submit(_in_worker, cell, self.config): cell for cell in cells
            }
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), *future.result()
        except BrokenProcessPool:
            raise AdshError(
                f"one of the {self.jobs} processes was ended from outside, for want of memory perhaps: run the same "
                "command again, with fewer --jobs; what is done is kept"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin(config: ExperimentConfig, jobs: int) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # stopped, it ends without a word: the first process has one
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
    open_data(config)


def _end_with(parent: int) -> None:
    """Nobody waits for this process once the first is gone, however it went."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _in_worker(cell: Cell, config: ExperimentConfig) -> tuple[dict[str, Any], str | None]:
    return _attempt(cell, open_data(config))


def _attempt(cell: Cell, data: ExperimentData) -> tuple[dict[str, Any], str | None]:
    """The record; or, where the data, an option or the machine make it impossible, the reason."""
    try:
        return measure(cell, data), None
    except AdshError as problem:
        return {}, first_line(problem)
    except _OF_THE_MACHINE as problem:
        return {}, f"{type(problem).__name__}: {first_line(problem)}"
