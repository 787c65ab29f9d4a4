"""A linear function fitted to weighted signs by the squared hinge loss, for one bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def fit_hinge(X: Floats, signs: Floats, weights: Floats, start: Floats, penalty: float, steps: int = 100) -> Floats:
    """(d,) w of small mean_i weights_i max(0, 1 - signs_i x_i.w)^2 + penalty |w|^2, from `start`.

    Accelerated gradient descent: a step costs two products with X and no matrix of d x d, so wide features are fine.
    """
    share = weights / max(float(weights.sum()), 1e-30)  # sums to 1
    rate = 0.5 / (_largest(X, share) + penalty)
    w, ahead, momentum = start, start, 1.0
    for _ in range(steps):
        short = np.maximum(0, 1 - signs * (X @ ahead))
        gradient = penalty * ahead - X.T @ (share * signs * short)  # half of it
        after = ahead - 2 * rate * gradient
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = after + np.float32((momentum - 1) / following) * (after - w)
        w, momentum = after, following
    return w.astype(np.float32)


def hinge_loss(X: Floats, signs: Floats, weights: Floats, w: Floats, penalty: float) -> float:
    """What `fit_hinge` lowers."""
    share = weights / max(float(weights.sum()), 1e-30)
    return float((share * np.maximum(0, 1 - signs * (X @ w)) ** 2).sum() + penalty * (w**2).sum())


def _largest(X: Floats, share: Floats) -> float:
    """A bound close above the largest eigenvalue of X' diag(share) X, by the power method."""
    v = np.ones(X.shape[1], dtype=np.float32) / np.float32(np.sqrt(X.shape[1]))
    size = 0.0
    for _ in range(15):
        v = X.T @ (share * (X @ v))
        size = float(np.linalg.norm(v))
        if size <= 0:
            return 1e-12
        v = v / np.float32(size)
    return 1.2 * size
