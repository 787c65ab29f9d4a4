"""Images of a source made ready for a network in one reading: at one size, checked, digested, and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .arrays import ArrayDataset
from .cache_limits import default_folder, disk_limit, memory_limit, words
from .dataset import Dataset
from .duplicates import Digests, digests
from .images.cache import InMemory, OnDisk, Store, fingerprint_of_files, needed_bytes
from .images.decode import Pixels
from .images.resized import ResizedDataset
from .readable import check_bad, read_through
from .splits import Indices

_DIGESTED = 1_000_000  # features at most: of more, copies are not looked for

RAM, DISK, NONE = "ram", "disk", "none"


@dataclass(frozen=True)
class Prepared:
    """A source made ready. `dataset` is as long as the source: an index means the same item in both."""

    dataset: Dataset
    readable: Indices  # the items that can be read, ascending; only those of `dataset` may be used
    bad: list[tuple[str, str]]  # key and reason of the others
    digests: Digests | None  # (n, 16) of the pixels as decoded, for `check_overlap`; None for very many features
    kept: str  # where the images are, and why there, in words

    def usable(self) -> Dataset:
        """The items that can be read."""
        return self.dataset.subset(self.readable) if self.bad else self.dataset


class CachedImages(ArrayDataset):
    """The images of a source at one size, in one array; keys, labels and classes are the source's."""

    from_files = True

    def __init__(self, images: Pixels, source: Dataset) -> None:
        self.items = images
        self.name, self.labels, self.classes = source.name, source.labels, source.classes
        self.keys, self.test_from = source.keys, source.test_from
        self.source = source

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """How long the file of each item is, where items are files."""
        return self.source.file_sizes(indices)


def prepare(
    dataset: Dataset,
    size: int | None,
    *,
    how: str = "crop",
    cache: str = RAM,
    cache_size: str | int | None = None,
    skip_bad: bool = False,
    least: int = 1,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Prepared:
    """Reads every image once. Those that cannot be read raise, all counted; with `skip_bad` they are listed.

    size, how    the side of the images, and how they are brought to it: see `ResizedDataset`
    cache        "ram"; "disk" (in ~/.cache/adsh) or a folder, for later runs too; "none": the files are read again
                 each time. What does not fit is not kept, and `kept` says so
    cache_size   the most to keep, such as "8GB"; half of the free memory, or what is free on the disk, unless given
    least        how many must be left with `skip_bad`
    workers      threads that read; as many as there are cores unless given

    Images that are an array of that size already, and arrays with no size given, are taken as they are.
    """
    if isinstance(dataset, ArrayDataset) and (size is None or dataset.items.shape[1:3] == (size, size)):
        return _as_it_is(dataset)
    if size is None:
        raise InputError(f"{dataset.name} holds images of sizes of their own: give the size to bring them to")
    sized = ResizedDataset(dataset, size, how)
    sized.workers = dataset.workers if workers is None else workers
    store, kept = _store(dataset, sized, cache, cache_size)
    read_through(dataset, store, fitted=sized.resized, workers=sized.workers, progress=progress)
    bad = [(dataset.keys[at], reason) for at, reason in store.bad.items()]
    check_bad(dataset.name, len(dataset), bad, skip_bad=skip_bad, least=least)
    ready = sized if store.images is None else CachedImages(store.images, dataset)
    readable = np.setdiff1d(np.arange(len(dataset)), list(store.bad)) if bad else np.arange(len(dataset))
    return Prepared(ready, readable, bad, store.digests, kept)


def _as_it_is(dataset: ArrayDataset) -> Prepared:
    """An array needs no reading: its items are digested, unless they are very many features."""
    found = digests(dataset) if dataset.items.ndim == 4 or len(dataset) <= _DIGESTED else None
    return Prepared(dataset, np.arange(len(dataset)), [], found, "in the source's own array")


def _store(dataset: Dataset, sized: ResizedDataset, cache: str, cache_size: str | int | None) -> tuple[Store, str]:
    """Where the images go, and the reason in words."""
    n, size = len(dataset), sized.size
    needed = needed_bytes(n, size)
    if cache == NONE:
        return InMemory(n, None), "not kept, as asked: files are read again each time"
    if cache == RAM:
        limit = memory_limit(cache_size)
        if needed <= limit:
            return InMemory(n, size), f"in memory, {words(needed)}"
        advice = "--cache disk keeps them on disk"
    else:
        folder = default_folder() if cache == DISK else Path(cache).expanduser()
        if folder.is_file():
            raise InputError(f"cache={cache!r} is a file: give ram, disk, none or a folder")
        fingerprint = fingerprint_of_files(dataset, size, sized.how, sized.resize)
        if fingerprint is None:
            store, kept = _store(dataset, sized, RAM, cache_size)
            return store, f"{kept}, not on disk: only a source of files can be recognised in a later run"
        there = any((folder / f"{fingerprint}{end}").exists() for end in ("", ".part"))  # has its room already
        limit = disk_limit(folder, cache_size) + (needed if there else 0)
        if needed <= limit:
            held = OnDisk(folder, fingerprint, n, size)
            again = ", read before" if held.whole else ", going on with it" if held.done else ""
            return held, f"on disk, {words(needed)} in {folder / fingerprint}{again}"
        advice = "free some, or give --cache another folder"
    return (
        InMemory(n, None),
        f"not kept: {words(needed)} are needed and a cache may take {words(limit)}; files are read again each time "
        f"({advice})",
    )
