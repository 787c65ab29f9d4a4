"""Images that are read again and again during a run: their pixels must stay those that were checked before it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .dataset import Dataset
from .duplicates import Digests, item_digest

_Stamp = tuple[int, int, int]


class UnchangedImages(Dataset):
    """A source of image files; reading one whose pixels were exchanged raises an error.

    The pixels are compared only where the size, the time or the inode of a file is another than before.

    Args:
        dataset: the source.
        stamps: of its files, as `stamps_of` returned them before the digests were computed.
        digests: (n, 16) of the pixels.
    """

    def __init__(self, dataset: Dataset, stamps: NDArray[np.int64], digests: Digests) -> None:
        self.whole, self._stamps, self._digests = dataset, stamps, digests
        self.name, self.labels, self.classes = dataset.name, dataset.labels, dataset.classes
        self.keys, self.test_from, self.workers = dataset.keys, dataset.test_from, dataset.workers

    def __getitem__(self, index: int) -> NDArray[Any]:
        item = self.whole[index]
        self._check(index, item)
        return item

    def __getitems__(self, indices: Sequence[int]) -> Sequence[NDArray[Any]]:
        items = list(self.whole.__getitems__(indices))
        for index, item in zip(indices, items, strict=True):
            self._check(index, item)
        return items

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the file size of each item."""
        return self.whole.file_sizes(indices)

    def locate(self, index: int) -> tuple[Dataset, int]:
        """Return the dataset behind this view that reads the item, and the item's index there."""
        return self.whole.locate(index)

    def _check(self, index: int, item: NDArray[Any]) -> None:
        now = _stamp(_file(self.whole, index))
        if now == tuple(self._stamps[index].tolist()):
            return
        if item_digest(item) != self._digests[index].tobytes():
            raise InputError(
                f"{self.keys[index]} was changed during the run: its pixels are others than before; leave the images "
                "as they are, or keep a copy of them with --cache ram or --cache disk"
            )
        self._stamps[index] = now


def stamps_of(dataset: Dataset) -> NDArray[np.int64] | None:
    """Return (n, 3) the size, time and inode of each item's file; None where items are not files of their own."""
    if not len(dataset) or _file(dataset, 0) is None:
        return None
    return np.array([_stamp(_file(dataset, index)) for index in range(len(dataset))], dtype=np.int64)


def _file(dataset: Dataset, index: int) -> Path | None:
    behind, at = dataset.locate(index)
    return behind.path(at)


def _stamp(path: Path | None) -> _Stamp:
    try:
        found = os.stat(path) if path is not None else None
    except (OSError, ValueError):  # ValueError: a name that no file can have
        found = None
    if found is None:
        return -1, -1, -1
    return found.st_size, found.st_mtime_ns, found.st_ino & (1 << 63) - 1
