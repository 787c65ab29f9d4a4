"""`digits`: the 1,797 handwritten digits that scikit-learn ships, 8 x 8 pixels. No download."""

from __future__ import annotations

import numpy as np

from ...errors import MissingExtraError
from ..arrays import ArrayDataset


def open_digits() -> ArrayDataset:
    """Open the digits as images (8, 8, 3), with the keys 0000 to 1796."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtraError("the digits come with scikit-learn: pip install 'adsh[baselines]'") from None
    digits = load_digits()
    images = np.repeat((digits.images[..., None] * 15).astype(np.uint8), 3, axis=3)  # values 0 .. 16
    return ArrayDataset(images, digits.target, keys=[f"{i:04}" for i in range(len(images))], name="digits")
