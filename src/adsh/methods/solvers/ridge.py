"""Ridge regression, the linear hash functions it fits, and the moments and principal axes of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Signs

Doubles = NDArray[np.float64]

_BLOCK = 4096  # points standardized at a time


class Linear:
    """`X @ weights + offset`."""

    kind: ClassVar[str] = "linear"

    def __init__(self, weights: Floats, offset: Floats) -> None:
        self.weights = weights.astype(np.float32)  # (d, c)
        self.offset = offset.astype(np.float32)  # (c,)
        self.width = len(weights)

    def outputs(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n, c) outputs."""
        product: NDArray[np.float32] = X @ self.weights + self.offset
        return product

    @classmethod
    def concatenate(cls, parts: Sequence[Linear]) -> Linear:
        """Return one function with the bits of all parts, in order."""
        weights = np.concatenate([part.weights for part in parts], axis=1)
        return cls(weights, np.concatenate([part.offset for part in parts]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is saved of it."""
        return {"weights": self.weights, "offset": self.offset}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Linear:
        """Return the function that was saved."""
        return cls(arrays["weights"], arrays["offset"])


def ridge_hash(X: NDArray[np.float32], signs: Signs, penalty: float) -> Linear:
    """Fit a linear hash function to codes by ridge regression on standardized features.

    Args:
        X: (n, d) features.
        signs: (n, c) the codes.
        penalty: Relative to n: each standardized feature has n on the diagonal of the Gram matrix.

    Returns:
        A linear function of the original features.
    """
    mean, scale = moments(X)
    width, bits = X.shape[1], signs.shape[1]
    gram, cross = np.zeros((width, width)), np.zeros((width, bits))
    for start in range(0, len(X), _BLOCK):
        block = (X[start : start + _BLOCK] - mean) / scale
        gram += block.T @ block
        cross += block.T @ signs[start : start + _BLOCK].astype(np.float32)
    weights = solve_ridge(gram, cross, penalty * len(X)) / scale[:, None].astype(np.float64)
    return Linear(weights, signs.mean(axis=0) - mean.astype(np.float64) @ weights)


def solve_ridge(gram: Doubles, cross: Doubles, penalty: float) -> Doubles:
    """Return W = (X'X + penalty I)^-1 X'Y, from X'X and X'Y.

    Args:
        gram: (d, d) X'X.
        cross: (d, c) X'Y.
        penalty: The weight of |W|^2.

    Returns:
        (d, c) W.
    """
    return np.asarray(np.linalg.solve(gram + penalty * np.eye(len(gram)), cross), dtype=np.float64)


def product(left: NDArray[Any], right: NDArray[Any]) -> Doubles:
    """Return left' right in float64, block by block: float32 sums over many points would exceed a small penalty."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for start in range(0, len(left), _BLOCK):
        part = slice(start, start + _BLOCK)
        total += left[part].astype(np.float64).T @ right[part].astype(np.float64)
    return total


def moments(X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the mean and the standard deviation of each feature; 1 for a constant feature."""
    mean = X.mean(axis=0, dtype=np.float64)
    square = np.zeros(X.shape[1])
    for start in range(0, len(X), _BLOCK):
        square += ((X[start : start + _BLOCK] - mean) ** 2).sum(axis=0)
    scale = np.sqrt(square / len(X))
    scale[scale <= 1e-6 * (np.abs(mean) + 1e-30)] = 1.0
    return mean.astype(np.float32), scale.astype(np.float32)


def principal_axes(X: NDArray[np.float32], count: int) -> tuple[NDArray[np.float32], Doubles, Doubles]:
    """Return the mean, the (d, count) axes of largest variance, and the variance along each, largest first."""
    mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)
    scatter = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), _BLOCK):
        block = (X[start : start + _BLOCK] - mean).astype(np.float64)  # squares of large features overflow float32
        scatter += block.T @ block
    variances, axes = np.linalg.eigh(scatter / len(X))
    return mean, axes[:, ::-1][:, :count], np.maximum(variances[::-1][:count], 0.0)
