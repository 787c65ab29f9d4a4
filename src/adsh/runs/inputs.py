"""From a source to what a run works on: its items made ready, and who of them asks and who answers.

Training, judging, coding and the making of features all take their items from here, so that an image is the same to
all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import ArrayDataset, Dataset, Prepared, Split, check_overlap, prepare, split, without_overlap
from ..data.readable import as_records
from ..errors import InputError
from ..networks import input_size

Reading = Callable[[int, int], None]  # how many items are read, of how many


@dataclass(frozen=True)
class Drawn:
    """A split whose sides share no image. Its indices are into the source as opened, unreadable items included."""

    parts: Split
    duplicates: int | None  # copies inside the database; None where they were not looked for
    left_out: list[str]  # keys of copies that would have been on both sides


def made_ready(
    dataset: Dataset,
    *,
    network: str | None = None,
    size: int | None = None,
    cache: str = "ram",
    cache_size: str | None = None,
    skip_bad: bool = False,
    workers: int | None = None,
    reading: Reading | None = None,
) -> Prepared:
    """The items as a network takes them. Files are read once, all of them, before anything long starts.

    Images in files come at `size`, by default the side that the network works on. Arrays stay as they are unless a
    size is given.
    """
    if size is None and not isinstance(dataset, ArrayDataset):
        size = input_size(network or "tiny")
        if size is None:
            raise InputError(
                f"network {network!r} takes features, but {dataset.name} holds images: choose tiny, "
                "efficientnet_lite0, …, or make features of them first with adsh features"
            )
    n = len(dataset)
    told = None if reading is None else lambda done: reading(done, n)
    return prepare(
        dataset, size, cache=cache, cache_size=cache_size, skip_bad=skip_bad, workers=workers, progress=told
    )  # fmt: skip


def draw(prepared: Prepared, protocol: str, seed: int, *, skip_copies: bool = False) -> Drawn:
    """The protocol's split of the source, less what cannot be read; refused where an image is on both sides.

    It is drawn from all items, so the same seed gives the same split whichever files are broken. With `skip_copies`,
    copies of asking items are left out of the database.
    """
    dataset, found = prepared.dataset, prepared.digests
    parts = split(dataset, protocol, seed)
    if prepared.bad:
        parts = parts.only(prepared.readable)
    if found is None:
        return Drawn(parts, None, [])
    dropped = np.empty(0, dtype=np.int64)
    if skip_copies:
        parts, dropped = without_overlap(parts, found)
    duplicates = check_overlap(dataset, parts, found)
    return Drawn(parts, duplicates, [dataset.keys[i] for i in dropped.tolist()])


def about_reading(prepared: Prepared, drawn: Drawn) -> dict[str, Any]:
    """What the log and the user are told of it."""
    if prepared.digests is None:
        return {}
    return {
        "items": len(prepared.dataset),
        "unreadable": as_records(prepared.bad),
        "duplicates": drawn.duplicates,
        "copies_left_out": drawn.left_out,
        "kept": prepared.kept,
    }
