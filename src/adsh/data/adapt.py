"""Whatever people have, as a dataset: paths, Pillow images, tables, datasets of torch and Hugging Face, DataLoaders."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..errors import InputError
from ..utils.urls import is_address
from .arrays import ArrayDataset
from .dataset import Dataset
from .images.decode import SUFFIXES
from .images.files import ImageFiles
from .items import Items
from .match_input import resize_for_model
from .sequence import SequenceDataset
from .sources.registry import open_source
from .tables import is_table, open_table

_PATH = (str, PathLike)
_ONE_IMAGE = (*_PATH, bytes, Image.Image)


def adapt(source: Any, what: str = "inputs") -> Any:
    """Return items as `Items` takes them: arrays and datasets of this package as they are, anything else as a dataset.

    Args:
        source: an array, a tensor, a dataset; a path, an image, or a list of them; a frame or table; a dataset of
            torch or Hugging Face, or a DataLoader, whose dataset is read in its own order.
        what: the name of the argument in errors.

    Returns:
        An array, a sequence of items, or a `Dataset`.
    """
    if source is None or isinstance(source, Dataset | Items):
        return source
    if isinstance(source, _ONE_IMAGE):
        return _one(source, what)
    if is_table(source):
        return open_table(source, name=what)
    if isinstance(source, np.ndarray) and source.dtype.kind in "UO" and source.ndim == 1 and len(source):
        source = source.tolist()
    if isinstance(source, list | tuple):
        return _images(list(source), what) if source and isinstance(source[0], _ONE_IMAGE) else source
    if isinstance(source, np.ndarray) or hasattr(source, "detach") or hasattr(source, "tocsr"):
        return source
    if not hasattr(source, "__getitem__") and hasattr(source, "dataset") and hasattr(source, "batch_size"):
        inner = source.dataset  # of a DataLoader
        return adapt(inner, what) if hasattr(inner, "__len__") else _collected(source, what)
    if _has_rows(source):
        return _in_memory(SequenceDataset(source, name=what))
    if hasattr(source, "__iter__") and not hasattr(source, "__len__") and not hasattr(source, "__array__"):
        return _collected(source, what)
    return source


def adapt_one_or_many(source: Any, shape: tuple[int, ...], what: str = "inputs") -> tuple[Any, bool]:
    """Return items as `adapt` does, for a model that takes items of this shape, and whether one alone was given.

    Args:
        source: as of `adapt`, or one item: an array (H, W, 3) or (d,).
        shape: of the items of the fit.
        what: the name of the argument in errors.

    Returns:
        The items, and whether the source is one item, not a collection of one.
    """
    if (isinstance(source, np.ndarray) and source.dtype.kind not in "UO") or hasattr(source, "detach"):
        dims = tuple(source.shape)
        one = len(dims) == len(shape) and (dims == shape if len(shape) == 1 else dims[-1] == shape[-1])
        if not one:
            return source, False
        return (source[None] if len(shape) == 1 else ImageList([np.asarray(source)], what)), True
    one = isinstance(source, bytes | Image.Image) or (isinstance(source, _PATH) and _is_image_file(source))
    return adapt(source, what), one


def adapt_for(source: Any, shape: tuple[int, ...], what: str = "inputs") -> Any:
    """Return items as `adapt_one_or_many` does, images of files at the size that a model takes.

    Args:
        source: what the user gave.
        shape: of the items of the fit.
        what: the name of the argument in errors.

    Returns:
        What `Items` takes; datasets of this package as they are.
    """
    adapted, _ = adapt_one_or_many(source, shape, what)
    return resize_for_model(adapted, shape) if isinstance(adapted, Dataset) and adapted is not source else adapted


class ImageList(SequenceDataset):
    """Images of any kind that `data.images.decode.as_pixels` takes, in a list."""

    def __init__(self, images: list[Any], name: str) -> None:
        super().__init__(images, label=False, name=name)
        self._item = None


def _is_image_file(source: Any) -> bool:
    return not is_address(source) and Path(source).suffix.lower() in SUFFIXES


def _one(source: Any, what: str) -> Dataset:
    """Return the dataset of a path, or of one image."""
    if isinstance(source, bytes | Image.Image):
        return ImageList([source], what)
    if _is_image_file(source):
        return ImageFiles(Path(), [str(source)], None, name=what)
    return open_source(source if isinstance(source, str) else Path(source))


def _images(images: list[Any], what: str) -> Dataset:
    if all(isinstance(image, _PATH) for image in images):
        return ImageFiles(Path(), [str(image) for image in images], None, name=what)
    return ImageList(images, what)


def _has_rows(source: Any) -> bool:
    """Return whether rows by index are not plain items: pairs, dicts, images or paths."""
    if not (hasattr(source, "__len__") and hasattr(source, "__getitem__")) or not len(source):
        return False
    try:
        first = source[0]
    except (LookupError, TypeError, ValueError, OSError):
        return False  # `Items` says what is wrong
    return isinstance(first, tuple | dict | Image.Image | str | bytes | PathLike)


def _in_memory(rows: SequenceDataset) -> Dataset:
    """Return rows of features as one array; images stay where they are."""
    if np.ndim(rows[0]) != 1:
        return rows
    features = np.stack([rows[at] for at in range(len(rows))])
    return ArrayDataset(features, rows.labels, classes=rows.classes, name=rows.name)


def _collected(batches: Iterable[Any], what: str) -> Dataset:
    """Return what batches hold, all in memory: of a loader whose dataset can only be gone through."""
    items, labels = [], []
    for batch in batches:
        parts = batch if isinstance(batch, tuple | list) else (batch,)
        if isinstance(batch, dict):
            raise InputError(f"{what} gives batches by name: give pairs (items, labels), or rows by index")
        if not hasattr(parts[0], "shape"):
            raise InputError(f"{what} gives a {type(parts[0]).__name__} at a time: give batches of tensors or arrays")
        items.append(np.asarray(parts[0]))
        labels += list(np.asarray(parts[1])) if len(parts) > 1 else []
    if not items:
        raise InputError(f"{what} is empty: give at least one item")
    return ArrayDataset(np.concatenate(items), np.asarray(labels) if labels else None, name=what)
