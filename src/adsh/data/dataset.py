"""The interface of every source: items by index, their labels, and keys that people recognise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets


class Dataset(ABC):
    """A length, items by index, labels and keys. Items are read on access, one by one or many at once.

    An item is an image, uint8 (H, W, 3), of its own size, or a row of features (d,).
    Tag t of the labels is called classes[t].
    """

    name: str  # what people call the source
    labels: LabelSets | None  # None where nothing is labelled
    classes: tuple[str, ...]  # names of the labels, in the source's order
    keys: Sequence[str]  # stable, one an item: a path or number that leads back to it
    test_from: int | None = None  # the published test part starts here, where the source has one
    workers: int | None = 0  # threads that may read items: None for one a core, 0 for the calling thread alone
    missing: Sequence[str] = ()  # keys that the source lists and whose files do not exist
    image_size: int | None = None  # the side that all images are resized to, where they are
    root: Path | None = None  # the folder that keys are paths below, where items are files
    variant: str = ""  # how items differ from the files they are read from, where they do
    from_files: bool = False  # whether `array` holds what was decoded from files
    columns: Mapping[str, Sequence[str]] = MappingProxyType({})  # what else a list says of each item, by name

    def __len__(self) -> int:
        return len(self.keys)

    @abstractmethod
    def __getitem__(self, index: int) -> NDArray[Any]:
        """Return the item at this index."""

    def __getitems__(self, indices: Sequence[int]) -> Sequence[NDArray[Any]] | NDArray[Any]:
        """Return the items at these indices."""
        return [self[index] for index in indices]

    @property
    def array(self) -> NDArray[Any] | None:
        """All items as one array; None where they are read one by one."""
        return None

    def array_rows(self) -> tuple[NDArray[Any] | None, NDArray[np.int64] | None]:
        """Return an array and the rows of it that are the items: None for all rows, or for no array."""
        return self.array, None

    def locate(self, index: int) -> tuple[Dataset, int]:
        """Return the dataset behind this view that reads the item, and the item's index there."""
        return self, index

    def path(self, index: int) -> Path | None:
        """Return the file of an item; None where items are not files of their own."""
        return None

    def metadata(self, index: int) -> dict[str, Any]:
        """Return what `columns` hold for an item, as an index stores it."""
        return {}

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the size of each item's file, -1 where it is missing; None where items are not files of their own."""
        return None

    def subset(self, indices: Any) -> Dataset:
        """Return a view of the items at these indices, in this order."""
        return Subset(self, np.asarray(indices, dtype=np.int64))


class Subset(Dataset):
    """A view of some items of another dataset; only the label numbers are copied."""

    def __init__(self, whole: Dataset, indices: NDArray[np.int64]) -> None:
        self.whole, self.indices = whole, indices
        self.name, self.classes = whole.name, whole.classes
        self.labels = None if whole.labels is None else whole.labels.take(indices)
        self.keys, self.workers, self.from_files = _SubsetKeys(whole.keys, indices), whole.workers, whole.from_files

    def __getitem__(self, index: int) -> NDArray[Any]:
        return self.whole[int(self.indices[index])]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[NDArray[Any]] | NDArray[Any]:
        return self.whole.__getitems__(self.indices[np.asarray(indices, dtype=np.int64)].tolist())

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the file size of each item, where items are files."""
        return self.whole.file_sizes(self.indices[indices])

    def array_rows(self) -> tuple[NDArray[Any] | None, NDArray[np.int64] | None]:
        """Return the array of the other dataset and the rows of this view."""
        return (None, None) if self.whole.array is None else (self.whole.array, self.indices)

    def locate(self, index: int) -> tuple[Dataset, int]:
        """Return the dataset behind this view that reads the item, and the item's index there."""
        return self.whole.locate(int(self.indices[index]))


class Numbered(Sequence[str]):
    """The keys "0", "1", … of items without names, formatted on access."""

    def __init__(self, count: int) -> None:
        self._numbers = range(count)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        at = self._numbers[index]
        return str(at) if isinstance(at, int) else [str(number) for number in at]


class _SubsetKeys(Sequence[str]):
    def __init__(self, keys: Sequence[str], indices: NDArray[np.int64]) -> None:
        self._keys, self._indices = keys, indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        at = self._indices[index]
        return self._keys[int(at)] if at.ndim == 0 else [self._keys[int(i)] for i in at]
