"""Prepare the images of a source for a network in one pass: read, check, digest, resize and cache them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .arrays import ArrayDataset
from .cache_limits import default_folder, disk_limit, format_bytes, memory_limit
from .dataset import Dataset
from .duplicates import Digests, digests
from .images.cache import InMemory, OnDisk, Store, fingerprint_of_files, needed_bytes
from .images.decode import Pixels
from .images.resized import ResizedDataset
from .readable import check_bad, read_through
from .splits import Indices
from .unchanged import UnchangedImages, stamps_of

_MOST_DIGESTED = 1_000_000  # of more features than this, duplicates are not looked for

RAM, DISK, NONE = "ram", "disk", "none"


@dataclass(frozen=True)
class Prepared:
    """A prepared source. `dataset` is as long as the source: an index means the same item in both."""

    dataset: Dataset
    readable: Indices  # the items that can be read, ascending; only those of `dataset` may be used
    bad: list[tuple[str, str]]  # key and reason of the others
    digests: Digests | None  # (n, 16) of the pixels as decoded, for `check_overlap`; None for very many features
    kept: str  # where the images are stored, and why there, in words

    def usable(self) -> Dataset:
        """Return the items that can be read."""
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
        """Return the file size of each item, where items are files."""
        return self.source.file_sizes(indices)

    def locate(self, index: int) -> tuple[Dataset, int]:
        """Return the dataset behind this one that reads the item, and the item's index there."""
        return self.source.locate(index)


class ReadingOptions(TypedDict, total=False):
    """How `prepare` reads.

    skip_bad    list the items that cannot be read in `bad`, instead of raising
    least       how many items must be left with `skip_bad`; 1 unless given
    workers     threads that read; as many as there are cores unless given
    progress    called with the number of items read so far
    """

    skip_bad: bool
    least: int
    workers: int | None
    progress: Callable[[int], None] | None


def prepare(
    dataset: Dataset,
    size: int | None,
    *,
    how: str = "crop",
    cache: str = RAM,
    cache_size: str | int | None = None,
    **reading: Unpack[ReadingOptions],
) -> Prepared:
    """Read every image once, resize and cache it.

    Images that are an array of that size already, and arrays with no size given, are taken as they are.

    Args:
        dataset: the source.
        size: the side of the images.
        how: how they are resized to it, "crop" or "squash": see `ResizedDataset`.
        cache: "ram"; "disk" (in ~/.cache/adsh) or a folder, for later runs too; "none" reads the files again each
            time. What does not fit is not cached, and `Prepared.kept` says so.
        cache_size: the most to cache, such as "8GB"; by default half of the free memory, or what is free on the disk.
        **reading: skip_bad, least, workers and progress: see `ReadingOptions`.

    Returns:
        The images, the items that cannot be read, and where the images are cached.

    Raises:
        InputError: items cannot be read; all are counted, and the first are named. Not with `skip_bad`.
    """
    options = _Reading(**reading)
    array = dataset.array
    if array is not None and (size is None or array.shape[1:3] == (size, size)):
        return _prepare_array(dataset, array)
    if size is None:
        raise InputError(f"{dataset.name} holds images of different sizes: give the size to resize them to")
    resized = ResizedDataset(dataset, size, how)
    resized.workers = dataset.workers if options.workers is None else options.workers
    store, kept = _store(dataset, resized, cache, cache_size)
    stamps = None if store.images is not None else stamps_of(dataset)  # before anything is read
    read_through(dataset, store, resize=resized.resized, workers=resized.workers, progress=options.progress)
    bad = [(dataset.keys[at], reason) for at, reason in store.bad.items()]
    check_bad(dataset.name, len(dataset), bad, skip_bad=options.skip_bad, least=options.least)
    if stamps is not None:
        resized.whole = UnchangedImages(dataset, stamps, store.digests)
    prepared = resized if store.images is None else CachedImages(store.images, dataset)
    readable = np.setdiff1d(np.arange(len(dataset)), list(store.bad)) if bad else np.arange(len(dataset))
    return Prepared(prepared, readable, bad, store.digests, kept)


@dataclass(frozen=True)
class _Reading:
    """`ReadingOptions` with their defaults."""

    skip_bad: bool = False
    least: int = 1
    workers: int | None = None
    progress: Callable[[int], None] | None = None


def _prepare_array(dataset: Dataset, array: NDArray[np.generic]) -> Prepared:
    """Digest the items of an array, unless they are very many features; nothing needs to be read."""
    found = digests(dataset) if array.ndim == 4 or len(dataset) <= _MOST_DIGESTED else None
    return Prepared(dataset, np.arange(len(dataset)), [], found, "in the source's own array")


def _store(dataset: Dataset, resized: ResizedDataset, cache: str, cache_size: str | int | None) -> tuple[Store, str]:
    """Choose where the images are stored.

    Args:
        dataset: the source.
        resized: the same, resized.
        cache, cache_size: as of `prepare`.

    Returns:
        The store, and the reason in words.
    """
    n, size = len(dataset), resized.size
    needed = needed_bytes(n, size)
    if cache == NONE:
        return InMemory(n, None), "not kept, as asked: files are read again each time"
    if cache == RAM:
        limit = memory_limit(cache_size)
        if needed <= limit:
            return InMemory(n, size), f"in memory, {format_bytes(needed)}"
        advice = "--cache disk keeps them on disk"
    else:
        folder = default_folder() if cache == DISK else Path(cache).expanduser()
        if folder.is_file():
            raise InputError(f"cache={cache!r} is a file: give ram, disk, none or a folder")
        fingerprint = fingerprint_of_files(dataset, size, resized.how, resized.resize)
        if fingerprint is None:
            store, kept = _store(dataset, resized, RAM, cache_size)
            return store, f"{kept}, not on disk: only a source of files can be recognised in a later run"
        started = any(
            (folder / f"{fingerprint}{end}").exists() for end in ("", ".part")
        )  # it has its space on the disk already
        limit = disk_limit(folder, cache_size) + (needed if started else 0)
        if needed <= limit:
            on_disk = OnDisk(folder, fingerprint, n, size)
            again = ", read before" if on_disk.complete else ", going on with it" if on_disk.done else ""
            return on_disk, f"on disk, {format_bytes(needed)} in {folder / fingerprint}{again}"
        advice = "free some, or give --cache another folder"
    return (
        InMemory(n, None),
        f"not kept: {format_bytes(needed)} are needed and a cache may take {format_bytes(limit)}; files are read again "
        f"each time ({advice})",
    )
