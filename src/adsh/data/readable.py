"""Every item read once before anything long starts: better a list now than a crash after hours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, first_line
from .dataset import Dataset
from .duplicates import Digests, item_digest
from .images.cache import InMemory, Store
from .images.decode import Pixels
from .reader_pool import in_order, worker_count

_SHOWN = 20
_PIECE = 16  # items a thread reads in one go


@dataclass(frozen=True)
class Readable:
    """What a reading through gave."""

    dataset: Dataset  # the items that can be read: the dataset itself where all can
    bad: list[tuple[str, str]]  # key and reason of each that cannot
    digests: Digests  # (n, 16) of those that can, for `check_overlap`


def check_readable(
    dataset: Dataset,
    *,
    skip_bad: bool = False,
    progress: Callable[[int], None] | None = None,
    workers: int | None = None,
) -> Readable:
    """Reads every item. One that cannot be read raises, with all such counted and the first named.

    With `skip_bad` they are left out instead, and listed in the answer.
    """
    store = InMemory(len(dataset), None)
    read_through(dataset, store, workers=workers, progress=progress)
    bad = [(dataset.keys[at], reason) for at, reason in store.bad.items()]
    check_bad(dataset.name, len(dataset), bad, skip_bad=skip_bad)
    if not bad:
        return Readable(dataset, bad, store.digests)
    good = np.setdiff1d(np.arange(len(dataset)), list(store.bad))
    return Readable(dataset.subset(good), bad, store.digests[good])


def read_through(
    dataset: Dataset,
    store: Store,
    *,
    fitted: Callable[[NDArray[Any]], Pixels] | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Reads what the store lacks into it: digests, the images as `fitted` gives them, and who cannot be read.

    The threads are as many as the dataset allows, unless `workers` says.
    """
    images = store.images

    def read(indices: range) -> tuple[range, dict[int, str]]:
        bad = {}
        for index in indices:
            try:
                item = dataset[index]
                if images is not None:
                    images[index] = item if fitted is None else fitted(item)
                store.digests[index] = np.frombuffer(item_digest(item), dtype=np.uint8)
            except InputError as problem:
                bad[index] = first_line(problem)
        return indices, bad

    n = len(dataset)
    pieces = (range(start, min(start + _PIECE, n)) for start in range(store.done, n, _PIECE))
    threads = worker_count(dataset.workers if workers is None else workers)
    try:
        with closing(in_order(read, pieces, threads)) as results:
            for indices, bad in results:
                store.bad.update(bad)
                store.mark(indices.stop)
                if progress is not None:
                    progress(indices.stop)
        store.finish()
    finally:
        store.close()


def as_records(bad: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Who cannot be read and why, as logs and programs are told."""
    return [{"key": key, "reason": reason} for key, reason in bad]


def check_bad(name: str, items: int, bad: Sequence[tuple[str, str]], *, skip_bad: bool, least: int = 1) -> None:
    """Raises where items cannot be read: all of them counted, the first named; or, to be skipped, where too few can."""
    if not bad or (skip_bad and items - len(bad) >= least):
        return
    told = [reason if key in reason else f"{key}: {reason}" for key, reason in bad[:_SHOWN]]
    reasons = "; ".join(reason.removesuffix(": replace it, or leave it out") for reason in told)
    more = f"; and {len(bad) - _SHOWN:,} more, which adsh data info --skip-bad lists" if len(bad) > _SHOWN else ""
    some = len(bad) < items
    then = "replace them, or leave them out with skip_bad (--skip-bad)" if some else "give images that can be read"
    raise InputError(f"{name}: {len(bad):,} of {items:,} items cannot be read: {reasons}{more}; {then}")
