"""Any object with a length and rows by index: a Hugging Face dataset, a torch-style dataset, a list of files.

A row is an image, a pair (image, label), or a dict with a column for each. An image is a Pillow image, an
array (H, W, 3), a tensor (3, H, W), the path of a file, or its bytes; a float vector is taken for features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, first_line
from ..labels import LabelSets
from .arrays import name_labels
from .dataset import Dataset, Numbered
from .images.decode import as_pixels

_ITEMS = ("image", "img", "features", "pixel_values", "jpg", "png")
_LABELS = ("label", "labels", "fine_label", "class", "tags")


class SequenceDataset(Dataset):
    """The rows of an object, read on access.

    Args:
        rows: an object with a length and rows by index.
        item: the name (dict) or number (tuple) of the image in a row; found among the usual names unless given.
        label: the same for the label; False for none. Labels are needed all at once: they are taken from the label's
            own column (Hugging Face) or from `targets` (torchvision), and otherwise every row is read.
        labels: labels in any form that `LabelSets.of` takes, instead of those.
        keys: one an item; 0, 1, … unless given.
        classes: the names of labels that are numbers; those of the object unless given.
        name: what people call the source.
    """

    def __init__(
        self,
        rows: Any,
        *,
        item: str | int | None = None,
        label: str | int | bool | None = None,
        labels: Any = None,
        keys: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        name: str = "sequence",
    ) -> None:
        if not (hasattr(rows, "__len__") and hasattr(rows, "__getitem__")) or not len(rows):
            raise InputError(f"{name} is a {type(rows).__name__}: give an object with rows by index, and at least one")
        self.rows, self.name = rows, name
        self.keys = Numbered(len(rows)) if keys is None else keys
        first = _read(rows, 0, name)
        self._item = _column(first, item, _ITEMS, 0, name)
        at = None if label is False or labels is not None else _column(first, label, _LABELS, 1, name, needed=False)
        row_labels = _all_labels(rows, at, name) if labels is None else labels
        self.labels = None if row_labels is None else LabelSets.of(row_labels)
        for what, values in (("labels", self.labels), ("keys", self.keys)):
            if values is not None and len(values) != len(rows):
                raise InputError(f"{name} has {len(rows):,} rows and {len(values):,} {what}: give one a row")
        class_names = _class_names(rows, at) if classes is None else classes
        self.labels = None if self.labels is None else name_labels(self.labels, class_names, name)
        self.classes = () if self.labels is None else tuple(str(tag) for tag in self.labels.names)

    def __getitem__(self, index: int) -> NDArray[Any]:
        value = _read(self.rows, index, self.name)
        value = value if self._item is None else value[self._item]
        if not isinstance(value, dict | str | bytes) and np.ndim(value) == 1:
            return np.asarray(value)
        return as_pixels(value, f"{self.name}, row {index:,}")


def _read(rows: Any, index: int, name: str) -> Any:
    try:
        return rows[int(index)]
    except (LookupError, TypeError, ValueError, OSError) as problem:
        kind = type(problem).__name__
        raise InputError(f"{name} cannot give row {index:,} ({kind}: {first_line(problem)})") from None


def _column(row: Any, column: Any, usual: Sequence[str], place: int, name: str, needed: bool = True) -> Any:
    """Find the item or label in a row.

    Args:
        row: the first row.
        column: the name or number that the user gave, if any.
        usual: the names to look for, in a row that is a dict.
        place: the number to take, in a row that is a tuple.
        name: what errors call the source.
        needed: whether it is an error that there is none.

    Returns:
        A name, a number, or None where the row itself is the item.
    """
    if isinstance(row, dict) and not ({"bytes", "path"} & row.keys() and not set(_ITEMS) & row.keys()):
        found = [key for key in ([column] if isinstance(column, str) else usual) if key in row]
        if not found and (needed or isinstance(column, str)):
            raise InputError(f"{name} has the columns {', '.join(map(str, row))}: say which holds the item with item=")
        return found[0] if found else None
    if isinstance(row, tuple):
        at = column if isinstance(column, int) and not isinstance(column, bool) else place
        if at >= len(row) and needed:
            raise InputError(f"{name} has rows of {len(row)} parts: there is no part {at}")
        return at if at < len(row) else None
    return None


def _all_labels(rows: Any, at: Any, name: str) -> Any:
    if at is None:
        return None
    if isinstance(at, str) and at in (getattr(rows, "column_names", None) or ()):
        return [_plain(label) for label in rows[at]]
    targets = getattr(rows, "targets", None)
    if isinstance(at, int) and targets is not None:
        return targets if hasattr(targets, "ndim") else list(targets)
    return [_plain(_read(rows, index, name)[at]) for index in range(len(rows))]


def _plain(label: Any) -> Any:
    """Return a label as a plain value, where it is an array or a tensor."""
    return label.tolist() if hasattr(label, "tolist") else label


def _class_names(rows: Any, at: Any) -> Sequence[str] | None:
    """Return the object's own class names: of Hugging Face's ClassLabel, or torchvision's `classes`."""
    feature = (getattr(rows, "features", None) or {}).get(at) if isinstance(at, str) else None
    names = getattr(feature, "names", None) or getattr(getattr(feature, "feature", None), "names", None)
    return names or (getattr(rows, "classes", None) if isinstance(at, int) else None)
