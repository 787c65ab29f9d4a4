"""Kernel hash functions: weighted sums of radial basis functions around anchors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats

_BLOCK = 4096
_SAMPLE = 1000  # points whose distances to the anchors set the width of the kernel


class Anchors:
    """exp(-|x - a|^2 / (2 s^2)) for each anchor a."""

    def __init__(self, anchors: NDArray[np.float32], spread: float) -> None:
        self.anchors, self.spread = anchors, spread  # (a, d), s

    @classmethod
    def among(cls, anchors: NDArray[np.float32], points: NDArray[np.float32]) -> Anchors:
        """Return the kernel whose s is the median distance between points and anchors."""
        distances = np.sqrt(_squares(points[:: max(1, len(points) // _SAMPLE)], anchors))
        apart = distances[distances > 0]
        return cls(anchors, float(np.median(apart)) if len(apart) else 1.0)

    def features(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n, a) the kernel of each point with each anchor."""
        near = np.empty((len(X), len(self.anchors)), dtype=np.float32)
        for start in range(0, len(X), _BLOCK):
            block = _squares(X[start : start + _BLOCK], self.anchors)
            block *= -0.5 / self.spread**2
            np.exp(block, out=near[start : start + _BLOCK])
        return near


class Kernel:
    """A linear function of the kernel with the anchors: its values @ weights + offset.

    Args:
        anchors: the kernel.
        weights: (a, c).
        offset: (c,); None for models of versions that had none.
    """

    kind: ClassVar[str] = "kernel"

    def __init__(self, anchors: Anchors, weights: Floats, offset: Floats | None) -> None:
        self._anchors, self.weights = anchors, weights.astype(np.float32)
        self.offset = None if offset is None else offset.astype(np.float32)
        self.width = anchors.anchors.shape[1]

    def outputs(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n, c) outputs."""
        product: NDArray[np.float32] = self._anchors.features(X) @ self.weights
        return product if self.offset is None else product + self.offset

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is saved of it."""
        spread = np.array([self._anchors.spread])
        arrays = {"anchors": self._anchors.anchors, "spread": spread, "weights": self.weights}
        return arrays if self.offset is None else arrays | {"offset": self.offset}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Kernel:
        """Return the function that was saved."""
        return cls(Anchors(arrays["anchors"], float(arrays["spread"][0])), arrays["weights"], arrays.get("offset"))


def _squares(X: NDArray[np.float32], anchors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (n, a) squared distances."""
    centre = anchors.mean(axis=0)  # subtracted, so that large numbers do not cancel
    X, anchors = X - centre, anchors - centre
    squares: NDArray[np.float32] = (X**2).sum(axis=1)[:, None] - 2 * (X @ anchors.T) + (anchors**2).sum(axis=1)
    return np.maximum(squares, 0, out=squares)
