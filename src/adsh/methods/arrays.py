"""Arrays that the methods share: signs, and label sets as numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets

Floats = NDArray[np.float32] | NDArray[np.float64]
Signs = NDArray[np.int8]  # (n, c) of +1/-1
Indices = NDArray[np.int64]


def signs_of(values: Floats, before: Signs | None = None) -> Signs:
    """+1/-1, never 0: where a value is 0 the bit stays what it was `before`, or is +1."""
    signs = np.where(values >= 0, 1, -1).astype(np.int8)
    return signs if before is None else np.where(values == 0, before, signs)


def in_order(ids: NDArray[np.int64]) -> Indices:
    """The label sets as they first occur, whatever their numbers: how labels are written decides nothing."""
    used, first = np.unique(ids, return_index=True)
    return used[np.argsort(first)]


def tags_of_sets(labels: LabelSets) -> NDArray[np.float64]:
    """(K, L) multi-hot: the tags of each label set."""
    hot = np.zeros((labels.set_count, len(labels.names)))
    hot[np.repeat(np.arange(labels.set_count), np.diff(labels.starts)), labels.tags] = 1.0
    return hot
