"""The published updates of the deep methods, written out plainly in NumPy, loop by loop: the oracle of `methods`.

DPSH    Li, Wang, Kang (2016), with the buffer of all outputs that their programs keep
DHN     Zhu, Long, Wang, Cao (2016), with the smooth surrogate log cosh of their eq. (8)
DSH     Liu, Wang, Shan, Chen (2016), eq. (4), and its subgradients (5) and (6)
softmax the classifier, smoothed as Szegedy et al. (2016)

Each returns the gradient of the loss by the outputs of one batch; `train` takes the steps of a linear network by it, as
plain SGD does. S is in full, 0 and 1. Float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def sign(x: float) -> float:
    """+1 for 0, as the codes have it."""
    return 1.0 if x >= 0 else -1.0


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def dpsh(u: np.ndarray, batch: np.ndarray, buffer: np.ndarray, S: np.ndarray, eta: float) -> np.ndarray:
    """Put the batch into the buffer, then differentiate by the batch's side of each pair; the buffer is a constant.

    The loss is  - sum_i sum_j (s theta - log(1 + e^theta)) / (b n)  +  eta sum_i |sign(u_i) - u_i|^2 / (b n).
    """
    b, n = len(u), len(buffer)
    for i, item in enumerate(batch):
        buffer[item] = u[i]
    found = np.zeros_like(u)
    for i, item in enumerate(batch):
        for j in range(n):
            theta = u[i] @ buffer[j] / 2
            found[i] += (sigmoid(theta) - S[item, j]) * buffer[j] / 2 / (b * n)
        for k in range(u.shape[1]):
            found[i, k] += 2 * eta * (u[i, k] - sign(u[i, k])) / (b * n)
    return found


def dpsh_batch(u: np.ndarray, batch: np.ndarray, n: int, S: np.ndarray, eta: float) -> np.ndarray:
    """The same loss on the pairs of the batch: both ends of a pair move."""
    b = len(u)
    found = np.zeros_like(u)
    for i, item in enumerate(batch):
        for j, other in enumerate(batch):
            missing = sigmoid(u[i] @ u[j] / 2) - S[item, other]
            found[i] += missing * u[j] / 2 / b**2
            found[j] += missing * u[i] / 2 / b**2
        for k in range(u.shape[1]):
            found[i, k] += 2 * eta * (u[i, k] - sign(u[i, k])) / (b * n)
    return found


def dhn(z: np.ndarray, batch: np.ndarray, S: np.ndarray, weight: float) -> np.ndarray:
    """Of  sum_ij (log(1 + e^theta) - s theta) / b^2 + weight sum_ik log cosh(|z_ik| - 1) / b, theta = z_i . z_j."""
    b = len(z)
    found = np.zeros_like(z)
    for i, item in enumerate(batch):
        for j, other in enumerate(batch):
            missing = sigmoid(z[i] @ z[j]) - S[item, other]
            found[i] += missing * z[j] / b**2
            found[j] += missing * z[i] / b**2
        for k in range(z.shape[1]):
            found[i, k] += weight * math.tanh(abs(z[i, k]) - 1) * sign(z[i, k]) / b
    return found


def dsh(u: np.ndarray, batch: np.ndarray, S: np.ndarray, alpha: float) -> np.ndarray:
    """Eqs. (5) and (6): y = 1 - s, margin m = 2c; delta is +1 where -1 <= u <= 0 or u >= 1, and -1 elsewhere."""
    b, c = u.shape
    found = np.zeros_like(u)
    for i, item in enumerate(batch):
        for j, other in enumerate(batch):
            between = u[i] - u[j]
            if S[item, other]:
                step = between
            elif between @ between < 2 * c:
                step = -between
            else:
                step = np.zeros(c)
            found[i] += step / b**2
            found[j] -= step / b**2
            for end in (i, j):
                for k in range(c):
                    delta = 1.0 if -1 <= u[end, k] <= 0 or u[end, k] >= 1 else -1.0
                    found[end, k] += alpha * delta / b**2
    return found


def softmax(scores: np.ndarray, batch: np.ndarray, classes: np.ndarray, smoothing: float) -> np.ndarray:
    """Of the mean cross-entropy with the target (1 - smoothing) of the class plus smoothing / K of each of K."""
    b, count = scores.shape
    found = np.zeros_like(scores)
    for i, item in enumerate(batch):
        total = sum(math.exp(value) for value in scores[i])
        for k in range(count):
            target = (1 - smoothing) * (classes[item] == k) + smoothing / count
            found[i, k] = (math.exp(scores[i, k]) / total - target) / b
    return found


def train(
    W: np.ndarray,
    bias: np.ndarray,
    X: np.ndarray,
    batches: list[np.ndarray],
    gradient: Callable[[np.ndarray, np.ndarray], np.ndarray],
    rates: list[float],
    decay: float,
    *,
    tanh: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return W and bias of x -> W x + bias after a step of SGD with weight decay for each batch of item numbers."""
    W, bias = W.copy(), bias.copy()
    for batch, rate in zip(batches, rates, strict=True):
        outputs = X[batch] @ W.T + bias
        outputs = np.tanh(outputs) if tanh else outputs
        inner = gradient(outputs, batch) * ((1 - outputs**2) if tanh else 1.0)
        W, bias = W - rate * (inner.T @ X[batch] + decay * W), bias - rate * (inner.sum(axis=0) + decay * bias)
    return W, bias
