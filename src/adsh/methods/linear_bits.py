"""What Lin:Lin and Lin:V share: linear threshold functions of standardized features, learned bit by bit."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import DEFAULT_BITS
from .base import FeatureMethod
from .solvers.hinge import fit_hinge
from .solvers.ridge import Linear
from .validation import check_count, check_penalty

Floats = NDArray[np.float32]


class LinearBits(FeatureMethod):
    """A method that learns a linear threshold function per bit.

    Args:
        bits: Code length.
        rounds: How often all bits are updated.
        block: Points drawn for an update; None for what `_block_size` says.
        alternations: How often an update alternates between the two sides of a bit.
        penalty: The weight of |w|^2.
        **shared: As of `FeatureMethod`, without `use_full_database`.
    """

    default_block: ClassVar[int] = 8000
    needs_full_database: ClassVar[bool] = False

    def __init__(
        self,
        bits: int = DEFAULT_BITS,
        *,
        rounds: int = 3,
        block: int | None = None,
        alternations: int = 2,
        penalty: float = 1e-2,
        **shared: Any,
    ) -> None:
        if shared.setdefault("use_full_database", self.needs_full_database) is not self.needs_full_database:
            raise TypeError(f"use_full_database is {self.needs_full_database} for {self.name}")
        super().__init__(bits, **shared)
        self.rounds, self.block, self.alternations, self.penalty = rounds, block, alternations, penalty

    @property
    def learns_whole(self) -> bool:
        """The earlier name of `needs_full_database`."""
        return self.needs_full_database

    def _check(self, points: int, width: int) -> None:
        check_count(self.rounds, "rounds")
        check_count(self.alternations, "alternations")
        check_penalty(self.penalty, "penalty")
        if self.block is not None:
            check_count(self.block, "block")

    def _block_size(self, X: Floats) -> int:
        """Return how many of these points an update draws."""
        return min(len(X), self.block or self.default_block)


def fit_linear_bit(Z: Floats, M: Floats, bit: Floats, w: Floats, penalty: float) -> Floats:
    """Fit the function of one bit to sign(M v), with the weights |M v|.

    Args:
        Z: (m, d) standardized features, with the constant.
        M: (m, n) what each pair gains where the bit agrees.
        bit: (n,) v, the bit of the other side.
        w: (d,) the function before.
        penalty: The weight of |w|^2.

    Returns:
        (d,) the new function, or `w` where that gains more.
    """
    pull = M @ bit
    fitted = fit_hinge(Z, signs(pull), np.abs(pull), w, penalty)
    return fitted if signs(Z @ fitted) @ pull >= signs(Z @ w) @ pull else w


def products(Z: Floats, W: Floats, V: Floats) -> Floats:
    """Return the inner products of the codes sign(Z W) and V; 0 for no bits.

    Args:
        Z: (m, d) standardized features, with the constant.
        W: (d, c) the linear functions.
        V: (K, c) the database's codes.

    Returns:
        (m, K) integers, in float32.
    """
    inner: Floats = signs(Z @ W) @ V.T
    return inner


def signs(values: Floats) -> Floats:
    """Return +1/-1 in float32; 0 counts as +1."""
    return np.where(values >= 0, np.float32(1), np.float32(-1))


def standardize(X: Floats, mean: Floats, scale: Floats) -> Floats:
    """Return standardized features, and a constant of 1.

    Args:
        X: (n, d) features.
        mean: (d,) of each feature.
        scale: (d,) its standard deviation.

    Returns:
        (n, d + 1) the standardized features and the constant.
    """
    return np.concatenate([(X - mean) / scale, np.ones((len(X), 1), dtype=np.float32)], axis=1)


def unstandardize(W: Floats, mean: Floats, scale: Floats) -> Linear:
    """Return the same function of the original features.

    Args:
        W: (d + 1, c) functions of standardized features and the constant.
        mean: (d,) of each feature.
        scale: (d,) its standard deviation.

    Returns:
        A linear function with an offset per bit.
    """
    weights = W[:-1] / scale[:, None]
    return Linear(weights, W[-1] - mean @ weights)
