"""The weighted squared hinge loss, minimized by accelerated gradient descent: a linear function for one bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def fit_hinge(X: Floats, signs: Floats, weights: Floats, start: Floats, penalty: float, steps: int = 100) -> Floats:
    """Lower mean_i weights_i max(0, 1 - signs_i x_i.w)^2 + penalty |w|^2 over w.

    A step costs two products with X, and no d x d matrix exists, so wide features are fine.

    Args:
        X: (n, d) features.
        signs: (n,) the bit to predict.
        weights: (n,) how much each point counts.
        start: (d,) where to start.
        penalty: The weight of |w|^2.
        steps: How many gradient steps to take.

    Returns:
        (d,) w after the last step.
    """
    share = weights / max(float(weights.sum()), 1e-30)  # sums to 1
    rate = 0.5 / (_eigenvalue_bound(X, share) + penalty)
    w, ahead, momentum = start, start, 1.0
    for _ in range(steps):
        short = np.maximum(0, 1 - signs * (X @ ahead))
        gradient = penalty * ahead - X.T @ (share * signs * short)  # half of it
        after = ahead - 2 * rate * gradient
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = after + np.float32((momentum - 1) / following) * (after - w)
        w, momentum = after, following
    return w.astype(np.float32)


def _eigenvalue_bound(X: Floats, share: Floats) -> float:
    """Return a bound slightly above the largest eigenvalue of X' diag(share) X, by power iteration."""
    v = np.ones(X.shape[1], dtype=np.float32) / np.float32(np.sqrt(X.shape[1]))
    size = 0.0
    for _ in range(15):
        v = X.T @ (share * (X @ v))
        size = float(np.linalg.norm(v))
        if size <= 0:
            return 1e-12
        v = v / np.float32(size)
    return 1.2 * size
