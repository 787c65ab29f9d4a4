"""Anything a user may pass as inputs, read by index: arrays, tensors, or a lazy sequence larger than memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

_CHECKED_AT_ONCE = 1 << 24  # values looked at in one go for NaN


class Items:
    """A length, the shape of an item, and `take(indices)`. `what` names the argument in errors.

    Items are features (d,) of any real type, or images (H, W, channels) of uint8. A lazy sequence has
    `__len__` and `__getitem__`; where it also has `__getitems__(indices)`, whole batches are read at once.
    """

    def __init__(self, source: Any, what: str = "inputs") -> None:
        self.what = what
        self._array: NDArray[Any] | None = None
        if hasattr(source, "detach"):
            self._array = source.detach().cpu().numpy()
        elif isinstance(source, np.ndarray):
            self._array = source
        elif isinstance(source, list | tuple):
            self._array = np.asarray(source)
        elif not (hasattr(source, "__len__") and hasattr(source, "__getitem__")):
            raise InputError(f"{what} is a {type(source).__name__}: give an array, or an object with len() and items")
        self._source = source
        if not len(self):
            raise InputError(f"{what} is empty: give at least one item")
        first = self._read(np.zeros(1, dtype=np.int64))
        self.shape: tuple[int, ...] = first.shape[1:]
        if len(self.shape) not in (1, 3):
            raise InputError(f"an item of {what} has shape {self.shape}: give features (n, d), or images (n, H, W, 3)")
        if len(self.shape) == 3 and (first.dtype != np.uint8 or self.shape[2] not in (1, 3)):
            raise InputError(
                f"images of {what} have shape {self.shape} and type {first.dtype}: give uint8 (n, H, W, 3), "
                "channels last"
            )
        if self._array is not None and not isinstance(self._array, np.memmap):
            self._check_all_finite(self._array)

    def __len__(self) -> int:
        return len(self._source if self._array is None else self._array)

    def take(self, indices: NDArray[Any]) -> NDArray[Any]:
        """(b, …) the items at these indices."""
        items = self._read(indices)
        if items.shape[1:] != self.shape:
            raise InputError(f"items of {self.what} have shapes {self.shape} and {items.shape[1:]}: all must be alike")
        if self._array is None or isinstance(self._array, np.memmap):
            self._check_finite(items, indices)
        return items

    def _read(self, indices: NDArray[Any]) -> NDArray[Any]:
        items: NDArray[Any]
        if self._array is not None:
            items = self._array[indices]
        elif hasattr(self._source, "__getitems__"):
            items = self._stack(self._source.__getitems__(indices.tolist()))
        else:
            items = self._stack([self._source[i] for i in indices.tolist()])
        if items.dtype.kind not in "biuf":
            raise InputError(f"{self.what} holds values of type {items.dtype}: give real numbers")
        return items

    def _stack(self, read: Any) -> NDArray[Any]:
        if isinstance(read, np.ndarray):
            return read
        arrays = [np.asarray(item) for item in read]
        shapes = sorted({item.shape for item in arrays})
        if len(shapes) > 1:
            raise InputError(f"items of {self.what} have shapes {shapes[0]} and {shapes[1]}: all must be alike")
        return np.stack(arrays)

    def _check_all_finite(self, array: NDArray[Any]) -> None:
        step = max(1, _CHECKED_AT_ONCE // max(int(np.prod(self.shape)), 1))
        for start in range(0, len(array), step):
            self._check_finite(array[start : start + step], np.arange(start, min(start + step, len(array))))

    def _check_finite(self, items: NDArray[Any], indices: NDArray[Any]) -> None:
        if items.dtype.kind != "f":
            return
        finite = np.isfinite(items).reshape(len(items), -1).all(axis=1)
        if not finite.all():
            at = int(indices[np.flatnonzero(~finite)[0]])
            raise InputError(f"{self.what} holds NaN or infinity, first in item {at}: clean or drop such items")


def as_items(source: Any, what: str = "inputs") -> Items:
    """`source` as Items; Items pass through."""
    return source if isinstance(source, Items) else Items(source, what)
