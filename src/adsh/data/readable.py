"""Read every item once before anything long starts, so that broken files are found at once and all together."""

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

_SHOWN = 20  # items named in an error
_CHUNK = 16  # items a thread reads in one go


@dataclass(frozen=True)
class Readable:
    """The items that can be read, and those that cannot."""

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
    """Read every item.

    Args:
        dataset: the items.
        skip_bad: leave out the items that cannot be read, and list them in `Readable.bad`.
        progress: called with the number of items read so far.
        workers: threads that read; by default as many as the dataset allows.

    Returns:
        The items that can be read, and those that cannot.

    Raises:
        InputError: items cannot be read; all are counted, and the first are named. Not with `skip_bad`.
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
    resize: Callable[[NDArray[Any]], Pixels] | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Fill a store with digests, images and the items that cannot be read; items it has already are not read again.

    Args:
        dataset: the items.
        store: it is filled from `store.done` on.
        resize: applied to each image before it is stored.
        workers: threads that read; by default as many as the dataset allows.
        progress: called with the number of items read so far.
    """
    images = store.images

    def read(indices: range) -> tuple[range, dict[int, str]]:
        bad = {}
        for index in indices:
            try:
                item = dataset[index]
                if images is not None:
                    images[index] = item if resize is None else resize(item)
                store.digests[index] = np.frombuffer(item_digest(item), dtype=np.uint8)
            except InputError as problem:
                bad[index] = first_line(problem)
        return indices, bad

    n = len(dataset)
    chunks = (range(start, min(start + _CHUNK, n)) for start in range(store.done, n, _CHUNK))
    threads = worker_count(dataset.workers if workers is None else workers)
    try:
        with closing(in_order(read, chunks, threads)) as results:
            for indices, bad in results:
                store.bad.update(bad)
                store.mark(indices.stop)
                if progress is not None:
                    progress(indices.stop)
        store.finish()
    finally:
        store.close()


def as_records(bad: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Return the items that cannot be read, and why, as logs and --json have them."""
    return [{"key": key, "reason": reason} for key, reason in bad]


def check_bad(name: str, items: int, bad: Sequence[tuple[str, str]], *, skip_bad: bool, least: int = 1) -> None:
    """Raise if items cannot be read, unless they are to be skipped and enough are left.

    Args:
        name: what the error calls the source.
        items: how many items there are.
        bad: key and reason of those that cannot be read.
        skip_bad: whether they are to be skipped.
        least: how many must be left then.
    """
    if not bad or (skip_bad and items - len(bad) >= least):
        return
    lines = [reason if key in reason else f"{key}: {reason}" for key, reason in bad[:_SHOWN]]
    reasons = "; ".join(line.removesuffix(": replace it, or leave it out") for line in lines)
    more = f"; and {len(bad) - _SHOWN:,} more, which adsh data info --skip-bad lists" if len(bad) > _SHOWN else ""
    advice = "give images that can be read"
    if len(bad) < items:
        advice = "replace them, or leave them out with skip_bad (--skip-bad)"
    raise InputError(f"{name}: {len(bad):,} of {items:,} items cannot be read: {reasons}{more}; {advice}")
