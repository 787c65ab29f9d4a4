"""Checks of what `fit` of a method is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..labels import LabelSets
from ..learn.similarity import SharedTags
from .arrays import Indices


def check_labels(labels: Any, points: int, chosen: Indices, name: str) -> LabelSets:
    """The labels of Y, once it is known that a method can learn from those of the chosen items."""
    if labels is None:
        raise InputError(f"{name} learns from labels, and none are given: call fit(Y, labels)")
    known = LabelSets.of(labels)
    if len(known) != points:
        raise InputError(f"{len(known)} labels are given for {points} items of Y: give one an item")
    held = np.unique(known.ids[chosen]).astype(np.int64)
    held = held[~known.empty[held]]
    if not len(held) or SharedTags(known, known).all_similar(held, held):
        raise InputError(
            f"the {len(chosen)} training items hold no two of different labels: {name} needs similar and "
            "dissimilar pairs, so give items of at least two classes"
        )
    return known


def check_seed(seed: object) -> int:
    """The seed as an int, or an error."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed={seed!r}: give a whole number of at least 0")
    return int(seed)


def check_count(value: object, name: str, least: int = 1) -> None:
    """Raises unless an option is a whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}={value!r}: give a whole number of at least {least}")


def check_train(train: Any, points: int) -> Indices:
    """Ascending indices of the items to learn from; all of them for None."""
    if train is None:
        return np.arange(points)
    indices = np.asarray(train)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or not len(indices):
        raise InputError(f"train has shape {indices.shape} and type {indices.dtype}: give the indices of items of Y")
    if indices.min() < 0 or indices.max() >= points:
        odd = indices[(indices < 0) | (indices >= points)][0]
        raise InputError(f"train holds {odd}, but Y has {points} items: give indices from 0 to {points - 1}")
    return np.unique(indices).astype(np.int64)


def check_penalty(value: object, name: str) -> None:
    """Raises unless an option is a number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InputError(f"{name}={value!r}: give a number above 0")
