"""`lsh`: the signs of random projections. Learns nothing but the mean; what any learned code must beat."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Items, as_items
from ..errors import InputError, NotFittedError
from ..hamming.bits import Codes, bytes_for, check_bits, pack

_BLOCK = 4096  # items at a time


class LSH:
    """`bits` hyperplanes drawn from a normal distribution, through the mean of the training items."""

    database_codes_: Codes
    planes_: NDArray[np.float32]  # (d, c)
    mean_: NDArray[np.float32]  # (d,)
    history_: list[dict[str, float]]  # empty: there are no rounds

    def __init__(self, bits: int, *, seed: int = 0) -> None:
        self.bits, self.seed = bits, seed

    def fit(self, Y: Any, labels: Any = None, *, train: Any = None) -> LSH:
        """Draws the planes and codes the database Y. Labels are not read; `train` are the items the mean is of."""
        bits, items = check_bits(self.bits), as_items(Y, "Y")
        chosen = np.arange(len(items)) if train is None else np.asarray(train, dtype=np.int64)
        width = int(np.prod(items.shape))
        total = np.zeros(width)
        for start in range(0, len(chosen), _BLOCK):
            total += _flat(items, chosen[start : start + _BLOCK]).sum(axis=0, dtype=np.float64)
        self.mean_ = (total / len(chosen)).astype(np.float32)
        self.planes_ = np.random.default_rng(self.seed).standard_normal((width, bits), dtype=np.float32)
        self.history_, self.database_codes_ = [], self.encode(items)
        return self

    def encode(self, X: Any) -> Codes:
        """(n, bytes) packed codes: on which side of each plane an item lies."""
        if not hasattr(self, "planes_"):
            raise NotFittedError("this LSH is not fitted yet: call fit")
        items = as_items(X, "X")
        if int(np.prod(items.shape)) != len(self.mean_):
            raise InputError(f"items of X have {np.prod(items.shape)} values, but those of the fit {len(self.mean_)}")
        codes = np.empty((len(items), bytes_for(self.bits)), dtype=np.uint8)
        for start in range(0, len(items), _BLOCK):
            block = _flat(items, np.arange(start, min(start + _BLOCK, len(items))))
            codes[start : start + _BLOCK] = pack((block - self.mean_) @ self.planes_)
        return codes


def _flat(items: Items, indices: NDArray[np.int64]) -> NDArray[np.float32]:
    taken = items.take(indices)
    return taken.reshape(len(taken), -1).astype(np.float32)


def build(bits: int, **options: Any) -> LSH:
    """`lsh` of so many bits."""
    return LSH(bits, **options)
