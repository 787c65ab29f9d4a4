"""`synthetic`: features of many classes that come in groups, drawn anew each time. No download.

A class is a point in 64 dimensions, near those of its group; its items lie around it, and are lifted to 512 features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import ArrayDataset

CLASSES, ITEMS = 200, 180  # of the source

_INNER, _WIDTH, _IN_A_GROUP = 64, 512, 10  # dimensions of the classes and of the features, classes of a group


def class_features(classes: int, items: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw features of classes that come in groups.

    Args:
        classes: how many.
        items: of each class.
        seed: of the draw.

    Returns:
        (classes * items, 512) features, and the class of each.
    """
    rng = np.random.default_rng(seed)
    of_groups = max(1, classes // _IN_A_GROUP)
    groups = rng.standard_normal((of_groups, _INNER))[rng.integers(of_groups, size=classes)]
    means = 0.8 * groups + 0.8 * rng.standard_normal((classes, _INNER))
    labels = np.repeat(np.arange(classes), items)
    inner = means[labels] + 1.6 * rng.standard_normal((len(labels), _INNER))
    lifted = inner @ rng.standard_normal((_INNER, _WIDTH)) / 8 + 0.1 * rng.standard_normal((len(labels), _WIDTH))
    return np.maximum(lifted, 0).astype(np.float32), labels


def open_synthetic() -> ArrayDataset:
    """Open 200 classes of 180 items, those of seed 0."""
    features, labels = class_features(CLASSES, ITEMS, 0)
    return ArrayDataset(features, labels, classes=[f"class {i:03}" for i in range(CLASSES)], name="synthetic")
