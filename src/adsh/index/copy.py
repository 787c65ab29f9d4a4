"""Copy an index to another location of any kind; an interrupted copy continues when it is repeated."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import FolderError, InputError
from ..models.fingerprint import ModelId
from ..utils.urls import shown
from . import Index, open_index
from .locate import MODEL, inside, open_existing
from .matches import StoredVectors
from .rows import Rows

_BATCH = 4096  # items of one durable add
_SAMPLED, _NEAREST = 20, 25  # searches whose results are compared, and their k

Report = Callable[[int, int], None]  # items done, of how many


@dataclass(frozen=True)
class CopyResult:
    """What a copy did."""

    items: int  # in the target, afterwards
    new: int  # written now
    already: int  # were in the target before
    vectors: bool  # whether the target has vectors
    searches: int  # gave the same results in both
    seconds: float


def copy(source: str, target: str, report: Report | None = None) -> CopyResult:
    """Copy every item in the order of insertion, and check that both indexes hold and find the same.

    Args:
        source: the location of the index to copy.
        target: the location of the copy, which is created if it is missing.
        report: called with the number of items done, and of all.

    Returns:
        How many items were copied, and how many searches gave the same results.

    Raises:
        InputError: both are the same place, or the target holds items that the source does not.
        FolderError: the two differ afterwards.
    """
    started = time.perf_counter()
    with open_existing(source) as old:
        if _same(source, target):
            raise InputError(f"{old.location} is both the source and the target: give another target")
        model = None if old.model is None else ModelId(old.model, old.lineage)
        with open_index(inside(target), bits=old.bits, model=model, create=True) as new:
            _check_target(old, new)
            written, already = _copy_items(old, new, report)
            note = old.get_note(MODEL)
            if note is not None and new.get_note(MODEL) is None:
                new.set_note(MODEL, note)
            searches = _compare(old, new)
            return CopyResult(len(new), written, already, new.has_vectors, searches, time.perf_counter() - started)


def _same(source: str, target: str) -> bool:
    return shown(inside(source)) == shown(inside(target))


def _check_target(old: Index, new: Index) -> None:
    """Raise, before anything is written, if the target holds an item that the source does not."""
    for rows in new.batches(_BATCH):
        keys = [item.key for item in rows.items()]
        for key, found in zip(keys, old.get(keys), strict=True):
            if found is None:
                raise InputError(
                    f"{new.location} holds {key!r}, and {old.location} does not: copy to an empty place; nothing was "
                    "written"
                )


def _copy_items(old: Index, new: Index, report: Report | None) -> tuple[int, int]:
    projection = old.projection if new.keeps_vectors else None
    if projection is not None:
        new.set_projection(projection)
    total, done, written, already = len(old), 0, 0, 0
    for rows in old.batches(_BATCH):
        todo = _differing(rows, new)
        if len(todo):
            differing = rows.take(todo)
            items = list(differing.items())
            vectors = None if projection is None or differing.vectors is None else StoredVectors(differing.vectors)
            metadata = None if differing.metadata is None else [item.metadata for item in items]
            keys = [item.key for item in items]
            new.add(keys, differing.codes, metadata, vectors=vectors, by_network=old.networks(keys))
        written, already, done = written + len(todo), already + len(rows) - len(todo), done + len(rows)
        if report:
            report(done, max(total, done))
    return written, already


def _differing(rows: Rows, new: Index) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The positions of the items that the other index does not have, or has otherwise."""
    items = list(rows.items())
    copies = new.get([item.key for item in items])
    return np.array([at for at, (item, other) in enumerate(zip(items, copies, strict=True)) if item != other], np.int64)


def _compare(old: Index, new: Index) -> int:
    """Raise if the two hold different numbers of items, or find different ones; return how many searches were tried."""
    if len(old) != len(new):
        raise FolderError(
            f"{new.location} holds {len(new)} items and {old.location} {len(old)}: it held others before, or one of "
            "them is being written; copy to an empty place, or repeat the command when nothing is written"
        )
    sampled = old.sample(_SAMPLED) if len(old) else []
    for item in sampled:
        code = np.frombuffer(item.code, dtype=np.uint8)[None]
        expected, found = (index.search(code, k=_NEAREST)[0] for index in (old, new))
        if expected.keys != found.keys or expected.distances.tolist() != found.distances.tolist():
            raise FolderError(
                f"{new.location} finds other items for the code of {item.key!r} than {old.location}: it held items "
                "before, in another order; copy to an empty place"
            )
    return len(sampled)
