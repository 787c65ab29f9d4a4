"""Describe a dataset in a few figures: items, classes, label sets, duplicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets, advised_bits
from .dataset import Dataset
from .duplicates import Digests, count_duplicates, digests


def summary(
    dataset: Dataset, found: Digests | None = None, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Return figures of a dataset by name. Reads every item to find duplicates, unless the digests are given.

    items           how many
    classes         how many classes have a name
    label_sets      how many distinct sets of labels the items have
    unlabelled      items without any label
    similar_rate    the share of pairs of labelled items that have a label in common; None without labels
    duplicates      items whose content is that of an earlier one
    imbalance       how many times the items of the smallest class the largest has; None without two classes
    advised_bits    a code length for so many label sets; None without two

    Args:
        dataset: what to describe.
        found: the digest of each item; computed unless given.
        progress: called with the number of items read so far.

    Returns:
        The figures, and the name of the source.
    """
    labels = dataset.labels
    sizes = np.zeros(0) if labels is None else labels.sizes[(labels.sizes > 0) & ~labels.empty]
    several = len(sizes) > 1
    return {
        "source": dataset.name,
        "items": len(dataset),
        "classes": len(dataset.classes),
        "label_sets": len(sizes),
        "unlabelled": len(dataset) if labels is None else int(labels.sizes[labels.empty].sum()),
        "similar_rate": None if labels is None else similar_rate(labels),
        "duplicates": count_duplicates(digests(dataset, progress) if found is None else found),
        "imbalance": round(float(sizes.max() / sizes.min()), 1) if several else None,
        "advised_bits": advised_bits(len(sizes)) if several else None,
    }


def similar_rate(labels: LabelSets) -> float | None:
    """Return the share of pairs of labelled points with a label in common; None for fewer than two points."""
    sizes = np.where(labels.empty, 0, labels.sizes).astype(np.float64)
    points = sizes.sum()
    if points < 2:
        return None
    similar = _similar_points(labels)
    return float((sizes @ (similar - 1)) / (points * (points - 1)))  # - 1: a point is no pair with itself


def _similar_points(labels: LabelSets) -> NDArray[np.float64]:
    """Return (K,), how many points share a tag with a point of each label set, itself included."""
    starts, holders = labels.holders()
    holder_tags = np.repeat(np.arange(len(labels.names)), np.diff(starts))
    points_with = np.bincount(holder_tags, labels.sizes[holders], minlength=len(labels.names))  # (L,) by tag
    similar = np.zeros(labels.set_count)
    last_seen = np.full(labels.set_count, -1)  # the last set that each set was counted for, so that it counts once
    for k in np.flatnonzero(labels.sizes):
        tags = labels.tags[labels.starts[k] : labels.starts[k + 1]]
        if len(tags) == 1:
            similar[k] = points_with[tags[0]]
            continue
        for tag in tags:
            sets = holders[starts[tag] : starts[tag + 1]]
            uncounted = sets[last_seen[sets] != k]
            similar[k] += labels.sizes[uncounted].sum()
            last_seen[uncounted] = k
    return similar
