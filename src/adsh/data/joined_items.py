"""Several collections of items as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .items import Items


class JoinedItems(Items):
    """The items of one collection after those of another; all have one shape.

    Args:
        parts: the collections, at least one.
    """

    def __init__(self, parts: Sequence[Items]) -> None:
        shapes = list(dict.fromkeys(part.shape for part in parts))
        if len(shapes) > 1:
            raise InputError(f"new items have shape {shapes[1]}, but those before have {shapes[0]}: give the same")
        self._parts = list(parts)
        self._starts = np.cumsum([0, *map(len, parts)])
        self.what, self.shape = parts[-1].what, shapes[0]
        self.is_array = all(part.is_array for part in parts)
        self.in_memory = all(part.in_memory for part in parts)
        self.fingerprint_all = all(part.fingerprint_all for part in parts)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def take(self, indices: NDArray[Any]) -> NDArray[Any]:
        """Return (b, …), the items at these indices."""
        part_of = np.searchsorted(self._starts, indices, side="right") - 1
        taken = np.empty((len(indices), *self.shape), dtype=np.uint8 if len(self.shape) == 3 else np.float32)
        for number in np.unique(part_of):
            here = part_of == number
            taken[here] = self._parts[number].take(indices[here] - self._starts[number])
        return taken

    @property
    def workers(self) -> int | None:
        """Threads that may read, None for one a core; as many as every part allows."""
        allowed = [part.workers for part in self._parts if not part.in_memory]
        counts = [count for count in allowed if count is not None]
        return min(counts) if counts else (None if allowed else 0)

    def file_sizes(self) -> NDArray[np.int64] | None:
        """Return None: the parts have fingerprints of their own."""
        return None


class SomeItems(Items):
    """Some of the items of a collection, in this order.

    Args:
        items: the collection.
        indices: which of them.
    """

    def __init__(self, items: Items, indices: NDArray[np.int64]) -> None:
        self._items, self._indices = items, indices
        self.what, self.shape, self.is_array, self.in_memory, self.fingerprint_all = (
            items.what, items.shape, items.is_array, items.in_memory, items.fingerprint_all,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._indices)

    def take(self, indices: NDArray[Any]) -> NDArray[Any]:
        """Return (b, …), the items at these indices."""
        return self._items.take(self._indices[indices])

    @property
    def workers(self) -> int | None:
        """Threads that may read, None for one a core."""
        return self._items.workers

    def file_sizes(self) -> NDArray[np.int64] | None:
        """Return the file size of each item, where items are files."""
        sizes = self._items.file_sizes()
        return None if sizes is None else sizes[self._indices]
