"""Checks of the arguments of a method's constructor and `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..labels import LabelSets
from ..learn.similarity import SharedTags
from .arrays import Indices


def check_labels(labels: Any, points: int, chosen: Indices, name: str) -> LabelSets:
    """Return the labels of Y, checked: the method can learn from those of the chosen items.

    Args:
        labels: As `fit` was given them.
        points: How many items Y has.
        chosen: The indices of the items to learn from.
        name: The method, for the error.

    Returns:
        The label sets of all of Y.
    """
    if labels is None:
        raise InputError(
            f"{name} learns from labels, and none are given: call fit(Y, labels), which requires y to be passed, but "
            "the target y is None"
        )
    known = LabelSets.of(labels)
    if len(known) != points:
        raise InputError(f"{len(known)} labels are given for {points} items of Y: give one per item")
    label_sets = np.unique(known.ids[chosen]).astype(np.int64)
    label_sets = label_sets[~known.empty[label_sets]]
    if not len(label_sets) or SharedTags(known, known).all_similar(label_sets, label_sets):
        raise InputError(
            f"the {len(chosen)} training items have no two different labels: {name} needs similar and "
            "dissimilar pairs, so give items of at least two classes"
        )
    return known


def check_seed(seed: object) -> int:
    """Return the seed as an int. Raises InputError for anything but an integer of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed={seed!r}: give a whole number of at least 0")
    return int(seed)


def check_count(value: object, name: str, least: int = 1) -> None:
    """Raise unless an option is an integer of at least `least`.

    Args:
        value: What was given.
        name: The option, for the error.
        least: The smallest value allowed.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}={value!r}: give a whole number of at least {least}")


def check_train(train: Any, points: int) -> Indices:
    """Return the ascending indices of the items to learn from; all of them for None."""
    if train is None:
        return np.arange(points)
    indices = np.asarray(train)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or not len(indices):
        raise InputError(f"train has shape {indices.shape} and type {indices.dtype}: give the indices of items of Y")
    if indices.min() < 0 or indices.max() >= points:
        outside = indices[(indices < 0) | (indices >= points)][0]
        raise InputError(f"train holds {outside}, but Y has {points} items: give indices from 0 to {points - 1}")
    return np.unique(indices).astype(np.int64)


def check_penalty(value: object, name: str) -> None:
    """Raise unless an option is a number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InputError(f"{name}={value!r}: give a number above 0")
