"""Items that are arrays already: in memory, or in .npy and .npz files, memory-mapped where that can be."""

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

    A tensor of images may also be (n, 3, H, W). `classes` names the labels that are numbers or columns: label 2 is
    classes[2].
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
        for what, held in (("labels", self.labels), ("keys", self.keys)):
            if held is not None and len(held) != len(items):
                raise InputError(f"{name} has {len(items):,} items and {len(held):,} {what}: give one an item")
        if self.labels is None:
            self.classes = tuple(classes or ())
        else:
            self.labels = named(self.labels, classes, name)
            self.classes = tuple(str(tag) for tag in self.labels.names)

    def __getitem__(self, index: int) -> NDArray[Any]:
        item: NDArray[Any] = self.items[index]
        return item

    def __getitems__(self, indices: Sequence[int]) -> NDArray[Any]:
        return self.items[np.asarray(indices, dtype=np.int64)]


def named(labels: LabelSets, classes: Sequence[str] | None, name: str) -> LabelSets:
    """`labels` with the numbers 0, 1, … called by these names; labels that have names already are kept.

    The tags are the classes in their order, those that nobody has included.
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
    table = LabelSets.table(labels.starts, numbers[labels.tags], [str(called) for called in classes])
    return table.over(labels.ids)


def open_arrays(path: Path, labels: Path | None = None) -> ArrayDataset:
    """A .npy of items, or an .npz that holds `features` or `images` and, where there are any, `labels` and `keys`.

    Beside X.npy, its labels, keys and class names may lie in X.labels.npy, X.keys.npy and X.classes.npy.
    """
    if path.suffix.lower() == ".npy":
        whose = path.name.removesuffix(".npy")
        if labels is None and path.with_name(f"{whose}.labels.npy").is_file():
            labels = path.with_name(f"{whose}.labels.npy")
        return ArrayDataset(
            load_npy(path),
            None if labels is None else load_npy(labels),
            keys=_texts(path.with_name(f"{whose}.keys.npy")),
            classes=_class_names(labels),
            name=path.name,
        )
    held = Npz(path)
    here = [name for name in _ITEMS if name in held]
    if len(here) != 1:
        found = ", ".join(held) or "nothing"
        raise InputError(f"{path} holds {found}: an .npz needs one array named features or images, and labels")
    given = load_npy(labels) if labels is not None else held.get("labels")
    keys, classes = held.get("keys"), held.get("classes")
    return ArrayDataset(
        held[here[0]],
        given,
        keys=None if keys is None else [str(key) for key in keys],
        classes=None if classes is None else [str(name) for name in classes],
        name=path.name,
    )


def _class_names(labels: Path | None) -> list[str] | None:
    if labels is None or not labels.name.endswith(".labels.npy"):
        return None
    return _texts(labels.with_name(labels.name.replace(".labels.npy", ".classes.npy")))


def _texts(path: Path) -> list[str] | None:
    """The texts of a .npy, where there is one and it holds texts."""
    held = load_npy(path) if path.is_file() else None
    return None if held is None or held.dtype.kind != "U" else [str(text) for text in held]


def _channels_last(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    if tensor.ndim == 4 and tensor.shape[1] in (1, 3) and tensor.shape[3] not in (1, 3):
        tensor = tensor.permute(0, 2, 3, 1)
    return np.asarray(tensor.float() if tensor.is_floating_point() else tensor)
