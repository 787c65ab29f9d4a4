"""Array helpers that the methods share: signs, and label sets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets

Floats = NDArray[np.float32] | NDArray[np.float64]
Signs = NDArray[np.int8]  # (n, c) of +1/-1
Indices = NDArray[np.int64]


def signs_of(values: Floats, before: Signs | None = None) -> Signs:
    """Return +1/-1, never 0: where a value is 0, the sign `before`, or +1 without one."""
    signs = np.where(values >= 0, 1, -1).astype(np.int8)
    return signs if before is None else np.where(values == 0, before, signs)


def first_occurrences(ids: NDArray[np.int64]) -> Indices:
    """Return the label sets in the order of their first points, so that results do not depend on label names."""
    used, first = np.unique(ids, return_index=True)
    return used[np.argsort(first)]


def tags_of_sets(labels: LabelSets) -> NDArray[np.float64]:
    """Return (K, L) the tags of each label set, multi-hot."""
    hot = np.zeros((labels.set_count, len(labels.names)))
    hot[np.repeat(np.arange(labels.set_count), np.diff(labels.starts)), labels.tags] = 1.0
    return hot
