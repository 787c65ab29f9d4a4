"""What a dataset holds, in a few figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..labels import LabelSets
from ..learn.similarity import SharedTags
from .dataset import Dataset
from .duplicates import Digests, copies, digests


def summary(
    dataset: Dataset, found: Digests | None = None, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Figures of a dataset by name. Reads every item, for the duplicates, unless the digests are given.

    items           how many
    classes         how many classes have a name
    label_sets      how many distinct sets of labels the items have
    unlabelled      items without any label
    similar_rate    of the pairs of labelled items, how many share a label; None without labels
    duplicates      items whose content is that of an earlier one
    """
    labels = dataset.labels
    return {
        "source": dataset.name,
        "items": len(dataset),
        "classes": len(dataset.classes),
        "label_sets": 0 if labels is None else int(((labels.sizes > 0) & ~labels.empty).sum()),
        "unlabelled": len(dataset) if labels is None else int(labels.sizes[labels.empty].sum()),
        "similar_rate": None if labels is None else similar_rate(labels),
        "duplicates": copies(digests(dataset, progress) if found is None else found),
    }


def similar_rate(labels: LabelSets) -> float | None:
    """Of the pairs of two labelled points, the share that have a label in common; None for fewer than two points."""
    sizes = np.where(labels.empty, 0, labels.sizes).astype(np.float64)
    points = sizes.sum()
    if points < 2:
        return None
    used = np.flatnonzero(sizes)
    met = SharedTags(labels, labels).sum_columns(used, sizes[:, None])[:, 0]  # points similar to one of each set
    return float((sizes[used] @ (met - 1)) / (points * (points - 1)))  # - 1: a point is no pair with itself
