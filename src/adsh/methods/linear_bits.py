"""Linear threshold functions learned bit by bit, over standardised features: what Lin:Lin and Lin:V share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .base import FeatureMethod
from .solvers.hinge import fit_hinge
from .solvers.ridge import Linear
from .validation import check_count, check_penalty

Floats = NDArray[np.float32]


class LinearBits(FeatureMethod):
    """`rounds` over the bits on blocks of `block` points; a bit's two sides alternate `alternations` times."""

    default_block: ClassVar[int]
    learns_whole: ClassVar[bool] = False

    def __init__(
        self,
        bits: int,
        *,
        rounds: int = 3,
        block: int | None = None,
        alternations: int = 2,
        penalty: float = 1e-2,
        **shared: Any,
    ) -> None:
        super().__init__(bits, **shared, whole=self.learns_whole)
        self.rounds, self.alternations, self.penalty = rounds, alternations, penalty
        self.block = self.default_block if block is None else block

    def _check(self, points: int, width: int) -> None:
        for option in ("rounds", "block", "alternations"):
            check_count(getattr(self, option), option)
        check_penalty(self.penalty, "penalty")


def linear_bit(Z: Floats, M: Floats, bit: Floats, w: Floats, penalty: float) -> Floats:
    """(d,) the function of a bit after a fit to sign(M v), or the old one where the new one gains less."""
    pull = M @ bit
    fitted = fit_hinge(Z, signs(pull), np.abs(pull), w, penalty)
    return fitted if signs(Z @ fitted) @ pull >= signs(Z @ w) @ pull else w


def products(Z: Floats, W: Floats, V: Floats) -> Floats:
    """Inner products of the codes sign(Z W) and V; 0 for no bits."""
    inner: Floats = signs(Z @ W) @ V.T
    return inner


def signs(values: Floats) -> Floats:
    """+1/-1 in float32; 0 counts as +1."""
    return np.where(values >= 0, np.float32(1), np.float32(-1))


def with_constant(X: Floats, mean: Floats, scale: Floats) -> Floats:
    """Standardised features, and a constant of 1."""
    return np.concatenate([(X - mean) / scale, np.ones((len(X), 1), dtype=np.float32)], axis=1)


def unstandardised(W: Floats, mean: Floats, scale: Floats) -> Linear:
    """The same function of the features as they are given."""
    weights = W[:-1] / scale[:, None]
    return Linear(weights, W[-1] - mean @ weights)
