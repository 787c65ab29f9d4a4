"""The items that a run works on: prepared for a network, and split into queries and database.

Training, evaluation, encoding and features all take their items from here, so that an image is the same to all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..data import Dataset, Prepared, Split, check_overlap, prepare, split, without_overlap
from ..data.duplicates import overlap
from ..data.readable import as_records
from ..errors import InputError
from ..networks import input_size
from ..utils.progress import OnProgress


@dataclass(frozen=True)
class CheckedSplit:
    """A split whose queries and database share no image."""

    split: Split
    """Indices into the source as opened, unreadable items included."""
    duplicates: int | None
    """Copies inside the database; None where they were not searched for."""
    copies: list[tuple[str, str]]
    """Keys of database items that were left out as copies, and of the query that each is a copy of."""


def prepare_inputs(
    dataset: Dataset,
    *,
    network: str | None = None,
    size: int | None = None,
    cache: str = "ram",
    cache_size: str | None = None,
    skip_bad: bool = False,
    workers: int | None = None,
    on_read: OnProgress | None = None,
) -> Prepared:
    """Return the items as a network takes them. All files are read once, before anything long starts.

    Args:
        dataset: The source as opened.
        network: The network's name, which decides the size of images in files.
        size: The side that images are resized to; None for the network's own. Arrays stay as they are by default.
        cache: Where decoded images are cached: ram, disk, none, or a folder.
        cache_size: The largest size of the cache, such as 8GB.
        skip_bad: Leave out files that cannot be read, instead of raising.
        workers: Threads that read files.
        on_read: Called with the number of items read, and of all.

    Returns:
        The prepared source: its items, which of them can be read, and digests for `draw_split`.
    """
    if size is None and dataset.array is None:
        size = input_size(network or "tiny")
        if size is None:
            raise InputError(
                f"network {network!r} takes features, but {dataset.name} holds images: choose tiny, "
                "efficientnet_lite0, …, or compute features of them first with adsh features"
            )
    count = len(dataset)
    progress = None if on_read is None else lambda done: on_read(done, count)
    return prepare(
        dataset, size, cache=cache, cache_size=cache_size, skip_bad=skip_bad, workers=workers, progress=progress
    )  # fmt: skip


def draw_split(prepared: Prepared, protocol: str, seed: int, *, drop_duplicates: bool = False) -> CheckedSplit:
    """Return the protocol's split of the source, without unreadable items.

    It is drawn from all items, so the same seed gives the same split whichever files cannot be read.

    Args:
        prepared: The items.
        protocol: Such as holdout: see `adsh.data.split`.
        seed: The seed of the split.
        drop_duplicates: Leave database items out that are copies of queries, instead of raising.

    Returns:
        The split, and the copies that were found.

    Raises:
        InputError: An image is among the queries and in the database.
    """
    dataset, digests = prepared.dataset, prepared.digests
    drawn = split(dataset, protocol, seed)
    if prepared.bad:
        drawn = drawn.only(prepared.readable)
    if digests is None:
        return CheckedSplit(drawn, None, [])
    copies: list[tuple[str, str]] = []
    if drop_duplicates:
        queries, removed = overlap(digests, drawn)
        of = dict(zip(removed.tolist(), queries.tolist(), strict=True))
        copies = [(dataset.keys[copy], dataset.keys[query]) for copy, query in sorted(of.items())]
        drawn, _ = without_overlap(drawn, digests)
    return CheckedSplit(drawn, check_overlap(dataset, drawn, digests), copies)


def reading_summary(prepared: Prepared, checked: CheckedSplit) -> dict[str, Any]:
    """Return what the reading of images found, for the log and the user; {} where nothing was read."""
    if prepared.digests is None:
        return {}
    removed = [key for key, _ in checked.copies]
    return {
        "items": len(prepared.dataset),
        "unreadable": as_records(prepared.bad),
        "duplicates": checked.duplicates,
        "duplicates_removed": removed,
        "copies_left_out": removed,  # the older name
        "copies": [{"key": key, "copy_of": query} for key, query in checked.copies],
        "kept": prepared.kept,
    }
