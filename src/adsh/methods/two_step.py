"""Methods that first learn codes from labels alone, and then fit any hash function to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.bits import DEFAULT_BITS
from .arrays import Signs
from .base import FeatureMethod
from .hash_function import HashFunction
from .solvers.ridge import Linear, ridge_hash
from .solvers.trees import TreeFitter, Trees, load_lightgbm
from .validation import check_count, check_penalty, check_seed


class TwoStep(FeatureMethod):
    """A method that learns codes from labels, and then fits trees or a linear function to them.

    Args:
        bits: Code length.
        hash_function: "trees", boosted trees as in the papers, or "ridge", a linear function.
        trees: How many trees there are per bit.
        depth: Of each tree.
        penalty: Of "ridge", relative to the number of points.
        **shared: As of `FeatureMethod`.
    """

    def __init__(
        self,
        bits: int = DEFAULT_BITS,
        *,
        hash_function: str = "trees",
        trees: int = 200,
        depth: int = 4,
        penalty: float = 1e-3,
        **shared: Any,
    ) -> None:
        super().__init__(bits, **shared)
        self.hash_function, self.trees, self.depth, self.penalty = hash_function, trees, depth, penalty

    def _check(self, points: int, width: int) -> None:
        if self.hash_function not in ("trees", "ridge"):
            raise InputError(f"hash_function={self.hash_function!r}: choose 'trees' or 'ridge'")
        check_count(self.trees, "trees")
        check_count(self.depth, "depth")
        check_penalty(self.penalty, "penalty")
        if self.hash_function == "trees":
            load_lightgbm()  # a missing package is reported before the codes are learned

    def _learn_hash(self, X: NDArray[np.float32], codes: Signs) -> HashFunction:
        return self._fitter(X)(codes)

    def _fitter(self, X: NDArray[np.float32]) -> Callable[[Signs], Trees | Linear]:
        """Return a function that fits hash functions to codes of these points, any number of bits at a time."""
        if self.hash_function == "ridge":
            return lambda codes: ridge_hash(X, codes, self.penalty)
        return TreeFitter(X, trees=self.trees, depth=self.depth, seed=check_seed(self.seed))
