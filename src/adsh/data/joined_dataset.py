"""Several datasets as one, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets
from .dataset import Dataset


class JoinedDataset(Dataset):
    """The items of several datasets, with labels of their own.

    Args:
        parts: the datasets, at least one, with items of one shape.
        labels: of all items; None where nothing is labelled.
        keys: of all items; those of the parts unless given.
    """

    def __init__(
        self, parts: Sequence[Dataset], labels: LabelSets | None = None, keys: Sequence[str] | None = None
    ) -> None:
        self.parts = list(parts)
        self._starts = np.cumsum([0, *map(len, parts)])
        self.labels, self.name = labels, parts[0].name
        self.classes = () if labels is None else tuple(str(name) for name in labels.names)
        self.keys = [key for part in parts for key in part.keys[:]] if keys is None else keys
        workers = [part.workers for part in parts]
        counts = [count for count in workers if count is not None]
        self.workers = min(counts) if counts else None

    def __getitem__(self, index: int) -> NDArray[Any]:
        part, at = self._find(index)
        return part[at]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[NDArray[Any]]:
        numbers = np.asarray(indices, dtype=np.int64)
        part_of = np.searchsorted(self._starts, numbers, side="right") - 1
        found: list[Any] = [None] * len(numbers)
        for part in np.unique(part_of).tolist():
            places = np.flatnonzero(part_of == part)
            items = self.parts[part].__getitems__((numbers[places] - self._starts[part]).tolist())
            for place, item in zip(places.tolist(), items, strict=True):
                found[place] = item
        return found

    def locate(self, index: int) -> tuple[Dataset, int]:
        """Return the dataset behind this one that reads the item, and the item's index there."""
        part, at = self._find(index)
        return part.locate(at)

    def _find(self, index: int) -> tuple[Dataset, int]:
        part = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self.parts[part], index - int(self._starts[part])
