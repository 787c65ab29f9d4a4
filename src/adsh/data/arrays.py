"""Items that are arrays already: in memory, or in .npy and .npz files, memory-mapped where that can be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FolderError, InputError, first_line
from ..learn.labels import LabelSets
from .dataset import Dataset, Numbered

_ITEMS = ("features", "images")  # the names an .npz may hold its items under


class ArrayDataset(Dataset):
    """Features (n, d) or uint8 images (n, H, W, 3), with labels in any form `LabelSets.of` takes."""

    def __init__(
        self,
        items: NDArray[Any],
        labels: Any = None,
        *,
        keys: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        name: str = "arrays",
    ) -> None:
        self.items, self.name = items, name
        self.keys = Numbered(len(items)) if keys is None else keys
        self.labels = None if labels is None else LabelSets.of(labels)
        names = () if self.labels is None else self.labels.names
        self.classes = tuple(str(tag) for tag in (names if classes is None else classes))
        for what, count in (("labels", None if labels is None else len(self.labels or ())), ("keys", len(self.keys))):
            if count is not None and count != len(items):
                raise InputError(f"{name} has {len(items):,} items and {count:,} {what}: give one an item")

    def __getitem__(self, index: int) -> NDArray[Any]:
        item: NDArray[Any] = self.items[index]
        return item

    def __getitems__(self, indices: Sequence[int]) -> NDArray[Any]:
        return self.items[np.asarray(indices, dtype=np.int64)]


def open_arrays(path: Path, labels: Path | None = None) -> ArrayDataset:
    """A .npy of items, or an .npz that holds `features` or `images` and, where there are any, `labels` and `keys`."""
    if path.suffix == ".npy":
        return ArrayDataset(_load(path), None if labels is None else _load(labels), name=path.name)
    held = _load(path)
    here = [name for name in _ITEMS if name in held.files]
    if len(here) != 1:
        found = ", ".join(held.files) or "nothing"
        raise InputError(f"{path} holds {found}: an .npz needs one array named features or images, and labels")
    given = _load(labels) if labels is not None else _read(held, "labels", path)
    keys, classes = _read(held, "keys", path), _read(held, "classes", path)
    return ArrayDataset(
        _read(held, here[0], path),
        given,
        keys=None if keys is None else [str(key) for key in keys],
        classes=None if classes is None else [str(name) for name in classes],
        name=path.name,
    )


def _load(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FolderError(f"{path} does not exist: give the path of a .npy or .npz file") from None
    except (OSError, ValueError, EOFError) as problem:
        raise FolderError(f"{path} cannot be read as an array ({first_line(problem)}): save it again") from None


def _read(held: Any, name: str, path: Path) -> Any:
    try:
        return held[name] if name in held.files else None
    except (OSError, ValueError, EOFError) as problem:
        raise FolderError(f"{path}: {name} cannot be read ({first_line(problem)}): save it again") from None
