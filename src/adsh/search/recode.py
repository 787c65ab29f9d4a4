"""Encode items of an index again whose codes are by the network of an earlier model; a call can be repeated."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import ArrayDataset
from ..data.images.decode import decode
from ..data.match_input import resize_for_model
from ..data.sequence import SequenceDataset
from ..errors import AdshError, first_line
from ..index import Index, Item
from ..models.protocol import ItemEncoder
from ..utils.progress import OnProgress
from .item_metadata import Metadata, read_item

_BLOCK = 256  # items of one durable change


@dataclass(frozen=True)
class RecodeResult:
    """What was encoded again."""

    recoded: int
    unreadable: list[tuple[str, str]]
    """Keys and reasons of items that keep the code of the earlier network."""
    items: int
    seconds: float


def recode(
    index: Index, model: ItemEncoder, images: Path | None = None, on_done: OnProgress | None = None
) -> RecodeResult:
    """Encode every item again whose code is by the network of an earlier model; each block is whole before the next.

    Args:
        index: An index that follows the model.
        model: The model.
        images: A folder that keys are paths below, for images that are no longer where they were.
        on_done: Called with the number of items looked at, and of all.

    Returns:
        How many items were encoded, and those that could not be read.
    """
    started, after, recoded = time.perf_counter(), "", 0
    unreadable: list[tuple[str, str]] = []
    total = count_outdated(index)
    while keys := index.outdated(after, _BLOCK):
        after = keys[-1]
        items = [item for item in index.get(keys) if item is not None]
        read, problems = _read(items, images)
        unreadable += problems
        recoded += _store(index, model, [item for item in items if item.key in read], read)
        if on_done:
            on_done(recoded + len(unreadable), total)
    return RecodeResult(recoded, unreadable, len(index), time.perf_counter() - started)


def count_outdated(index: Index) -> int:
    """Return how many items have codes by the network of an earlier model."""
    count, after = 0, ""
    while keys := index.outdated(after):
        count, after = count + len(keys), keys[-1]
    return count


def _read(items: list[Item], images: Path | None) -> tuple[dict[str, NDArray[Any]], list[tuple[str, str]]]:
    """Return images or features by key, and why others cannot be read."""
    read: dict[str, NDArray[Any]] = {}
    problems = []
    for item in items:
        try:
            read[item.key] = _read_one(item.key, item.metadata, images)
        except (AdshError, OSError) as problem:
            problems.append((item.key, first_line(problem)))
    return read, problems


def _read_one(key: str, metadata: Metadata | None, images: Path | None) -> NDArray[Any]:
    if images is not None and (images / key).is_file():
        return decode(str(images / key))
    return read_item(metadata)


def _store(index: Index, model: ItemEncoder, items: list[Item], read: dict[str, NDArray[Any]]) -> int:
    """Encode items and replace their codes and vectors.

    Args:
        index: The index.
        model: The model.
        items: Those that were read.
        read: Their images or features by key.
    """
    if not items:
        return 0
    values = [read[item.key] for item in items]
    dataset = (
        SequenceDataset(values, label=False, name="the images")
        if values[0].ndim == 3
        else ArrayDataset(np.stack(values))
    )
    codes, features = model.encode_with_features(resize_for_model(dataset, model.input_shape_))
    vectors = features if index.keeps_vectors and index.has_vectors else None
    metadata = [item.metadata for item in items]
    index.add([item.key for item in items], codes, metadata, vectors=vectors, by_network=True)
    return len(items)
