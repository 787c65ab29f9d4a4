"""The metadata that items get when they are ingested: the class, and what leads back to the image.

An item of a folder of images has {"class": "cat", "file": "/photos/cat/1.jpg"}; one of an array has the source and its
position there: {"class": "7", "source": "digits", "at": 12}. An image of a list has the list's other columns too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset
from ..data.images.decode import decode
from ..data.sources.registry import open_source
from ..errors import InputError

Metadata = dict[str, Any]
OWN_FIELDS = ("class", "file", "source", "at", "root")
"""What these mean is fixed: a column of such a name is not stored."""


def describe_item(dataset: Dataset, position: int, source: str, root: str | None) -> Metadata:
    """Return the metadata of an item.

    Args:
        dataset: A source, or a view of one.
        position: The item's position in the dataset.
        source: How to open the source again: a name or a path.
        root: Where the files of a named source are, if that was given.

    Returns:
        The item's class, if it has any, the other columns of its list, and where it comes from: its file, or the source
        and its position there.
    """
    origin, index = dataset.locate(position)
    metadata: Metadata = {name: value for name, value in origin.metadata(index).items() if name not in OWN_FIELDS}
    if dataset.labels is not None:
        names = [str(name) for name in dataset.labels.names_of(int(dataset.labels.ids[position]))]
        if names:
            metadata["class"] = names[0] if len(names) == 1 else names
    path = origin.path(index)
    if path is not None:
        return metadata | {"file": str(path.absolute())}
    return metadata | {"source": source, "at": index} | ({"root": root} if root else {})


def location_of(metadata: Metadata | None) -> str:
    """Return where the item comes from: its file, or the source and its position there."""
    values = metadata or {}
    return str(values.get("file") or f"{values.get('source')} {values.get('at')}")


def load_image(metadata: Metadata | None) -> NDArray[np.uint8] | None:
    """Read the image that an item's metadata leads back to; None where there is none, or it was deleted."""
    try:
        item = read_item(metadata)
        return item if item.ndim == 3 else None
    except (OSError, InputError, IndexError, TypeError):  # a user's own metadata may hold anything
        return None


def read_item(metadata: Metadata | None) -> NDArray[Any]:
    """Read the image or the features that an item's metadata leads back to; raise where there is none."""
    values = metadata or {}
    if isinstance(values.get("file"), str):
        return decode(values["file"])
    if isinstance(values.get("source"), str) and isinstance(values.get("at"), int):
        return _open_cached(values["source"], values.get("root"))[values["at"]]
    raise InputError("its metadata does not say where it is: give --images FOLDER")


@cache
def _open_cached(name: str, root: str | None) -> Dataset:
    return open_source(name, root=root)
