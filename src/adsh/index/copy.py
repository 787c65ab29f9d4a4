"""An index copied from one place to another, whatever kind each is; an interrupted copy goes on when repeated."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import FolderError, InputError
from ..utils.urls import shown
from . import Index, open_index
from .locate import MODEL, inside, open_existing
from .matches import StoredVectors
from .rows import Rows

_BATCH = 4096  # items of one durable add
_SAMPLED, _NEAREST = 20, 25  # searches that both must answer alike, and how deep they look

Report = Callable[[int, int], None]  # items done, of how many


@dataclass(frozen=True)
class Copied:
    """What a copy did."""

    items: int
    new: int
    already: int  # were there as they are
    vectors: bool  # whether the vectors were taken along
    searches: int  # answered alike by both
    seconds: float


def copy(source: str, target: str, report: Report | None = None) -> Copied:
    """Copies every item in the order of insertion, and sees that both indexes hold and find the same."""
    started = time.perf_counter()
    with open_existing(source) as old:
        if _same(source, target):
            raise InputError(f"{old.location} is both what is copied and where to: give another place")
        with open_index(inside(target), bits=old.bits, model=old.model) as new:
            _check_target(old, new)
            put, already = _copy_items(old, new, report)
            note = old.noted(MODEL)
            if note is not None and new.noted(MODEL) is None:
                new.note(MODEL, note)
            searches = _compare(old, new)
            return Copied(len(new), put, already, new.has_vectors, searches, time.perf_counter() - started)


def _same(source: str, target: str) -> bool:
    return shown(inside(source)) == shown(inside(target))


def _check_target(old: Index, new: Index) -> None:
    """Raises, before anything is written, where the target holds items that are not of this source."""
    for rows in new.batches(_BATCH):
        keys = [item.key for item in rows.items()]
        for key, found in zip(keys, old.get(keys), strict=True):
            if found is None:
                raise InputError(
                    f"{new.location} holds {key!r}, which {old.location} has not: copy to an empty place; nothing was "
                    "written"
                )


def _copy_items(old: Index, new: Index, report: Report | None) -> tuple[int, int]:
    projection = old.projection if new.keeps_vectors else None
    if projection is not None:
        new.adopt(projection)
    total, done, put, already = len(old), 0, 0, 0
    for rows in old.batches(_BATCH):
        todo = _differing(rows, new)
        if len(todo):
            some = rows.take(todo)
            items = list(some.items())
            vectors = None if projection is None or some.vectors is None else StoredVectors(some.vectors)
            metadata = None if some.metadata is None else [item.metadata for item in items]
            new.add([item.key for item in items], some.codes, metadata, vectors=vectors)
        put, already, done = put + len(todo), already + len(rows) - len(todo), done + len(rows)
        if report:
            report(done, max(total, done))
    return put, already


def _differing(rows: Rows, new: Index) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The positions of the items that are not in the other index as they are here."""
    items = list(rows.items())
    there = new.get([item.key for item in items])
    return np.array([at for at, (mine, yours) in enumerate(zip(items, there, strict=True)) if mine != yours], np.int64)


def _compare(old: Index, new: Index) -> int:
    """Raises where the two do not hold as many items, or answer a search differently; gives how many were tried."""
    if len(old) != len(new):
        raise FolderError(
            f"{new.location} holds {len(new)} items and {old.location} {len(old)}: it held others before, or one of "
            "them is being written; copy to an empty place, or repeat the command when nobody writes"
        )
    sampled = old.sample(_SAMPLED) if len(old) else []
    for item in sampled:
        code = np.frombuffer(item.code, dtype=np.uint8)[None]
        mine, yours = (index.search(code, k=_NEAREST)[0] for index in (old, new))
        if mine.keys != yours.keys or mine.distances.tolist() != yours.distances.tolist():
            raise FolderError(
                f"{new.location} finds other items for the code of {item.key!r} than {old.location}: it held items "
                "before, in another order; copy to an empty place"
            )
    return len(sampled)
