"""What every source gives: items by index, their labels, and keys that people recognise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets


class Dataset(ABC):
    """A length, items by index, labels and keys. Items are read when asked for, one by one or many at once.

    An item is an image, uint8 (H, W, 3), of its own size, or a row of features (d,).
    Tag t of the labels is called classes[t].
    """

    name: str  # what people call the source
    labels: LabelSets | None  # None where nothing is labelled
    classes: tuple[str, ...]  # the labels' names, in the source's order
    keys: Sequence[str]  # stable, one an item: a path, a number, whatever leads back to it
    test_from: int | None = None  # items from here on are the published test part, where the source has one
    workers: int | None = 0  # threads that may read items at once: None for one a core, 0 where only the caller's may

    def __len__(self) -> int:
        return len(self.keys)

    @abstractmethod
    def __getitem__(self, index: int) -> NDArray[Any]:
        """The item at this index."""

    def __getitems__(self, indices: Sequence[int]) -> Sequence[NDArray[Any]] | NDArray[Any]:
        """The items at these indices."""
        return [self[index] for index in indices]

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """How long the file of each item is, -1 where there is none; None where items are not files of their own."""
        return None

    def subset(self, indices: Any) -> Dataset:
        """A view of the items at these indices, in this order."""
        return Subset(self, np.asarray(indices, dtype=np.int64))


class Subset(Dataset):
    """Some items of another dataset; nothing is copied but the labels' numbers."""

    def __init__(self, whole: Dataset, indices: NDArray[np.int64]) -> None:
        self.whole, self.indices = whole, indices
        self.name, self.classes = whole.name, whole.classes
        self.labels = None if whole.labels is None else whole.labels.take(indices)
        self.keys, self.workers = _SomeKeys(whole.keys, indices), whole.workers

    def __getitem__(self, index: int) -> NDArray[Any]:
        return self.whole[int(self.indices[index])]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[NDArray[Any]] | NDArray[Any]:
        return self.whole.__getitems__(self.indices[np.asarray(indices, dtype=np.int64)].tolist())

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """How long the file of each item is, where items are files."""
        return self.whole.file_sizes(self.indices[indices])


class Numbered(Sequence[str]):
    """The keys "0", "1", … of items that have no names: made as they are asked for."""

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


class _SomeKeys(Sequence[str]):
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
