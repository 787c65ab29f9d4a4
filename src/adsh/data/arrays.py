"""Items in arrays: in memory, or in .npy and .npz files, which are memory-mapped where possible."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..labels import LabelSets
from .dataset import Dataset, Numbered
from .npz import Npz, load_npy

_ITEMS = ("features", "images")  # the names an .npz may hold its items under


class ArrayDataset(Dataset):
    """Features (n, d) or uint8 images (n, H, W, 3), NumPy or torch, with labels in any form `LabelSets.of` takes.

    A tensor of images may also be (n, 3, H, W).

    Args:
        items: the features or images.
        labels: of the items; None for unlabelled ones.
        keys: the name of each item; its number unless given.
        classes: names the labels that are numbers or columns: label 2 is classes[2].
        name: what errors call the source.
        test_from: the index at which the published test part starts, if there is one.
    """

    def __init__(
        self,
        items: Any,
        labels: Any = None,
        *,
        keys: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        name: str = "arrays",
        test_from: int | None = None,
    ) -> None:
        self.items: NDArray[Any] = _channels_last(items) if hasattr(items, "detach") else items
        self.name, self.test_from = name, test_from
        self.keys = Numbered(len(items)) if keys is None else keys
        self.labels = None if labels is None else LabelSets.of(labels)
        for what, values in (("labels", self.labels), ("keys", self.keys)):
            if values is not None and len(values) != len(items):
                raise InputError(f"{name} has {len(items):,} items and {len(values):,} {what}: give one an item")
        if self.labels is None:
            self.classes = tuple(classes or ())
        else:
            self.labels = name_labels(self.labels, classes, name)
            self.classes = tuple(str(tag) for tag in self.labels.names)

    def __getitem__(self, index: int) -> NDArray[Any]:
        item: NDArray[Any] = self.items[index]
        return item

    def __getitems__(self, indices: Sequence[int]) -> NDArray[Any]:
        return self.items[np.asarray(indices, dtype=np.int64)]

    @property
    def array(self) -> NDArray[Any]:
        """All items as one array."""
        return self.items


def name_labels(labels: LabelSets, classes: Sequence[str] | None, name: str) -> LabelSets:
    """Return labels with the numbers 0, 1, … replaced by class names; labels that have names already keep them.

    Args:
        labels: of the items.
        classes: the name of each number; classes that no item has are kept. None for no names.
        name: what errors call the source.

    Returns:
        The labels by name.
    """
    if classes is None or not all(isinstance(tag, int) for tag in labels.names):
        return labels
    numbers = np.array(labels.names, dtype=np.int64)
    odd = numbers[(numbers < 0) | (numbers >= len(classes))]
    if len(odd):
        raise InputError(
            f"{name} has the label {odd[0]}, but {len(classes)} classes, numbered 0 to {len(classes) - 1}: "
            "correct the label, or name more classes"
        )
    table = LabelSets.table(labels.starts, numbers[labels.tags], [str(class_name) for class_name in classes])
    return table.with_ids(labels.ids)


def open_arrays(path: Path, labels: Path | None = None) -> ArrayDataset:
    """Open a .npy of items, or an .npz with `features` or `images` and optionally `labels`, `keys` and `classes`.

    The labels, keys and class names of X.npy may lie next to it in X.labels.npy, X.keys.npy and X.classes.npy.
    """
    if path.suffix.lower() == ".npy":
        stem = path.name.removesuffix(".npy")
        if labels is None and path.with_name(f"{stem}.labels.npy").is_file():
            labels = path.with_name(f"{stem}.labels.npy")
        items = load_npy(path)
        if not items.ndim:
            raise InputError(f"{path} holds a single value: give an array of items")
        return ArrayDataset(
            items,
            None if labels is None else load_npy(labels),
            keys=_texts(path.with_name(f"{stem}.keys.npy")),
            classes=_class_names(labels),
            name=path.name,
        )
    arrays = Npz(path)
    found_items = [name for name in _ITEMS if name in arrays]
    if len(found_items) != 1:
        found = ", ".join(arrays) or "nothing"
        raise InputError(f"{path} holds {found}: an .npz needs one array named features or images, and labels")
    keys, classes, items = arrays.get("keys"), arrays.get("classes"), arrays[found_items[0]]
    for name, array in (("keys", keys), ("classes", classes), (found_items[0], items)):
        if array is not None and not array.ndim:
            raise InputError(f"{path}: {name} is a single value: give an array with one an item")
    return ArrayDataset(
        items,
        load_npy(labels) if labels is not None else arrays.get("labels"),
        keys=None if keys is None else [str(key) for key in keys],
        classes=None if classes is None else [str(name) for name in classes],
        name=path.name,
    )


def _class_names(labels: Path | None) -> list[str] | None:
    if labels is None or not labels.name.endswith(".labels.npy"):
        return None
    return _texts(labels.with_name(labels.name.replace(".labels.npy", ".classes.npy")))


def _texts(path: Path) -> list[str] | None:
    """Return the texts of a .npy; None where there is no such file, or it holds no texts."""
    array = load_npy(path) if path.is_file() else None
    return None if array is None or array.dtype.kind != "U" or array.ndim != 1 else [str(text) for text in array]


def _channels_last(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    if tensor.ndim == 4 and tensor.shape[1] in (1, 3) and tensor.shape[3] not in (1, 3):
        tensor = tensor.permute(0, 2, 3, 1)
    return np.asarray(tensor.float() if tensor.is_floating_point() else tensor)
