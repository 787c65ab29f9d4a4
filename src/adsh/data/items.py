"""Whatever a user may pass as inputs, read by index: arrays, tensors, or a lazy sequence larger than memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import AdshError, InputError, first_line
from .dataset import Dataset

_SPREAD = 4096  # items of the evenly spread sample, at most
_READ_WHOLE = 1 << 32  # bytes: a larger memory-mapped array is fingerprinted by a sample
_READ_AT_ONCE = 1 << 22  # values checked in one go


class Items:
    """A length, the shape of an item, and `take(indices)`.

    Items are features (d,) of any real type, or images (H, W, channels) of uint8. A lazy sequence has
    `__len__` and `__getitem__`; where it also has `__getitems__(indices)`, whole batches are read at once.

    Args:
        source: an array, a tensor, a list of items, a `Dataset`, or any lazy sequence.
        what: the name of the argument in errors.
    """

    def __init__(self, source: Any, what: str = "inputs") -> None:
        self.what = what
        self._source = source
        self._dataset = source if isinstance(source, Dataset) else None  # else an object of the user's
        array, self._rows = (None, None) if self._dataset is None else self._dataset.array_rows()
        self._array = self._as_array(source if array is None else array)
        if not len(self):
            raise InputError(f"{what} is empty: give at least one item")
        first = self._read(np.zeros(1, dtype=np.int64))
        self.shape: tuple[int, ...] = first.shape[1:]
        if self.shape == (0,):
            raise InputError(
                f"{what} has 0 feature(s) (shape=({len(self)}, 0)) while a minimum of 1 is required: give features"
            )
        if len(self.shape) not in (1, 3):
            hint = {0: f"; for one item pass {what}[None]", 2: "; grey images need a last axis of 1 channel"}
            raise InputError(
                f"an item of {what} has shape {self.shape}: give features (n, d), or images (n, H, W, 3)"
                + hint.get(len(self.shape), "")
            )
        if len(self.shape) == 3 and (first.dtype != np.uint8 or self.shape[2] not in (1, 3)):
            raise InputError(
                f"images of {what} have shape {self.shape} and type {first.dtype}: give uint8 (n, H, W, 3), "
                "channels last"
            )
        self._checked = False
        self.is_array = self._array is not None
        self.in_memory = self.is_array and not isinstance(self._array, np.memmap)
        # Images that were read from files have one fingerprint, wherever they are stored now.
        small = self._array is not None and self._array.nbytes <= _READ_WHOLE
        self.fingerprint_all = (self.in_memory or small) and not (
            self._dataset is not None and self._dataset.from_files
        )
        if self.in_memory:
            if len(self.shape) == 1:  # every uint8 can be a pixel
                self.read_through(range(len(self)))
            self._checked = True

    def __len__(self) -> int:
        if self._rows is not None:
            return len(self._rows)
        return len(self._source if self._array is None else self._array)

    def take(self, indices: NDArray[Any]) -> NDArray[Any]:
        """Return (b, …), the items at these indices: float32 features, or uint8 images."""
        if not len(indices):
            return np.empty((0, *self.shape), dtype=np.uint8 if len(self.shape) == 3 else np.float32)
        items = self._read(indices)
        if len(items) != len(indices) or items.shape[1:] != self.shape:
            raise InputError(
                f"{self.what} gave items of shape {items.shape} for {len(indices)} indices, where the first item has "
                f"shape {self.shape}: give items of one shape"
            )
        with np.errstate(over="ignore"):
            items = np.array(items, dtype=np.uint8 if len(self.shape) == 3 else np.float32, order="C")
        if not self._checked and items.dtype == np.float32:
            finite = np.isfinite(items).all(axis=1)
            if not finite.all():
                at = int(indices[np.flatnonzero(~finite)[0]])
                raise InputError(
                    f"{self.what} holds NaN, infinity or a value beyond float32, first in item {at}: "
                    "clean, scale or drop such items"
                )
        return items

    @property
    def workers(self) -> int | None:
        """Threads that may read, None for one a core; 0 for arrays, and for objects that may not be thread-safe."""
        if self._array is None:
            return 0 if self._dataset is None else self._dataset.workers
        return 1 if not self.in_memory and len(self.shape) == 3 else 0

    def file_sizes(self) -> NDArray[np.int64] | None:
        """Return the file size of each item, where items are files."""
        return None if self._dataset is None else self._dataset.file_sizes(np.arange(len(self)))

    def spread(self) -> NDArray[np.int64]:
        """Return the indices of at most 4,096 items, spread evenly: a sample to measure or recognise the items by."""
        return np.unique(np.linspace(0, len(self) - 1, min(len(self), _SPREAD)).astype(np.int64))

    def read_through(self, indices: NDArray[Any] | range) -> None:
        """Read these items once, block by block; raise where one cannot be used."""
        step = max(1, _READ_AT_ONCE // max(int(np.prod(self.shape)), 1))
        for start in range(0, len(indices), step):
            self.take(np.asarray(indices[start : start + step]))

    def _as_array(self, source: Any) -> NDArray[Any] | None:
        """Return the source as an array, where it is one; None for a lazy sequence."""
        if hasattr(source, "tocsr"):
            raise InputError(f"{self.what} is a sparse matrix: pass {self.what}.toarray()")
        if hasattr(source, "detach"):
            tensor = source.detach().cpu()
            return np.asarray(tensor.float() if tensor.is_floating_point() else tensor)
        if isinstance(source, np.ndarray):
            return source
        if isinstance(source, list | tuple):
            try:
                return np.asarray(source)
            except ValueError:
                raise InputError(
                    f"{self.what} is a list of items of different shapes: give items of one shape"
                ) from None
        if hasattr(source, "__array__") and not hasattr(source, "__getitem__"):
            return np.asarray(source)
        if not (hasattr(source, "__len__") and hasattr(source, "__getitem__")):
            kind = type(source).__name__
            raise InputError(f"{self.what} is a {kind}: give an array, or an object with len() and items")
        return None

    def _read(self, indices: NDArray[Any]) -> NDArray[Any]:
        items: NDArray[Any]
        if self._array is not None:
            items = self._array[indices if self._rows is None else self._rows[indices]]
        else:
            numbers, read = indices.tolist(), None
            try:
                many = getattr(self._source, "__getitems__", None)
                read = many(numbers) if many else [self._source[i] for i in numbers]
                items = read if isinstance(read, np.ndarray) else np.stack([np.asarray(item) for item in read])
            except AdshError:  # the source says itself what is wrong
                raise
            except (KeyError, IndexError, TypeError, ValueError) as problem:
                shapes = [getattr(item, "shape", ()) for item in read] if isinstance(read, list) else []
                sizes = {shape[:2] for shape in shapes if len(shape) == 3}
                if len(sizes) > 1:
                    shown = " and ".join(" x ".join(map(str, size)) for size in sorted(sizes)[:2])
                    raise InputError(
                        f"{self.what} holds images of several sizes, such as {shown}: give them one size with "
                        "adsh.data.ResizedDataset(dataset, 224)"
                    ) from None
                raise InputError(
                    f"{self.what} cannot be read by index, one array of one shape an item "
                    f"({type(problem).__name__}: {first_line(problem)}): pass an array, or a sequence of the "
                    "items alone, without their labels"
                ) from None
        if items.dtype.kind not in "biuf":
            if items.dtype.kind == "c":
                raise InputError(f"Complex data not supported: {self.what} holds {items.dtype}, give real numbers")
            paths = "; paths are not read here, load the images" if items.dtype.kind in "US" else ""
            raise InputError(f"{self.what} holds values of type {items.dtype}: give real numbers{paths}")
        return items


def as_items(source: Any, what: str = "inputs") -> Items:
    """Return `source` as Items; Items pass through."""
    return source if isinstance(source, Items) else Items(source, what)


def labels_of(items: Any, labels: Any) -> Any:
    """Return the labels given or, where there are none, those of a dataset."""
    return items.labels if labels is None and isinstance(items, Dataset) else labels
