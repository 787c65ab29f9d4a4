"""Logistic regression on features: softmax over classes, each class with the same weight; or a sigmoid for each label.

    sum_i w_i loss(y_i, x_i W + b) + decay / 2 |W|^2,   sum_i w_i = 1

by L-BFGS over all items at once, in NumPy. The weight decay is selected on a fifth of the items that are held out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float32]
Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]

DECAYS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of features whose mean squared norm is 1; strong to weak, each a warm start

_STEPS, _TRIAL_STEPS, _FEWEST = 80, 25, 25  # of L-BFGS: for the result, for each trial, and at least
_PRODUCTS = 2e10  # multiplications of all steps of the result: seconds on one core
_TRIAL_ITEMS = 2000  # that the weight decay is selected on, at most
_HELD_OUT = 5  # one of them in so many is held out
_MEMORY, _TOLERANCE = 10, 1e-4  # of L-BFGS


@dataclass(frozen=True)
class Logistic:
    """Probabilities of labels: `softmax((x - mean) / scale @ weights + offset)`, or the sigmoid of it."""

    mean: Features  # (d,)
    scale: float
    weights: Features  # (d, L)
    offset: Features  # (L,)
    exclusive: bool  # one label an item
    decay: float

    def probabilities(self, X: Features) -> Features:
        """Return (n, L) the probability of each label."""
        return _probabilities((X - self.mean) / self.scale @ self.weights + self.offset, self.exclusive)


def fit_logistic(X: Features, hot: Features, rng: np.random.Generator) -> Logistic:
    """Fit a classifier to features.

    Args:
        X: (n, d) features.
        hot: (n, L) 1 for each label of an item. Where every item has one label, classes are exclusive and balanced.
        rng: Draws the items that the weight decay is selected on.

    Returns:
        The classifier.
    """
    exclusive = bool((hot.sum(axis=1) == 1).all())
    mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)
    centered = X - mean
    scale = float(np.sqrt((centered.astype(np.float64) ** 2).sum(axis=1).mean())) or 1.0
    centered /= np.float32(scale)
    decay, start = _select(centered, hot, exclusive, rng)
    steps = int(np.clip(_PRODUCTS / (X.size * hot.shape[1]), _FEWEST, _STEPS))
    theta = _minimize(_objective(centered, hot, decay, exclusive), start, steps)
    weights = theta.astype(np.float32)
    return Logistic(mean, scale, weights[:-1], weights[-1], exclusive, decay)


def _select(X: Features, hot: Features, exclusive: bool, rng: np.random.Generator) -> tuple[float, Doubles]:
    """Return the weight decay whose classifier has the smallest loss on the items held out, and its parameters."""
    trial, held_out = _trial_items(hot, exclusive, rng)
    thetas = [np.zeros((X.shape[1] + 1, hot.shape[1]))]
    if not len(trial) or not len(held_out):
        return DECAYS[len(DECAYS) // 2], thetas[0]
    losses: list[float] = []
    for decay in DECAYS:
        thetas.append(_minimize(_objective(X[trial], hot[trial], decay, exclusive), thetas[-1], _TRIAL_STEPS))
        losses.append(_objective(X[held_out], hot[held_out], 0.0, exclusive)(thetas[-1])[0])
        if losses[-1] > min(losses):
            break  # weaker ones fit the items still more closely
    best = int(np.argmin(losses))
    return DECAYS[best], thetas[1 + best]


def _trial_items(hot: Features, exclusive: bool, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Return the items that trials learn from, and those they are evaluated on: the same share of each class."""
    groups = hot.argmax(axis=1) if exclusive else np.zeros(len(hot), dtype=np.int64)
    order = np.lexsort((rng.random(len(hot)), groups))
    place = np.arange(len(hot)) - np.searchsorted(groups[order], groups[order])  # within its class
    is_held_out = place % _HELD_OUT == _HELD_OUT - 1
    sides = []
    for side, share in ((order[~is_held_out], 1 - 1 / _HELD_OUT), (order[is_held_out], 1 / _HELD_OUT)):
        most = int(share * _TRIAL_ITEMS)
        sides.append(side[np.linspace(0, len(side) - 1, most).astype(int)] if len(side) > most else side)
    return sides[0], sides[1]


def _objective(X: Features, hot: Features, decay: float, exclusive: bool) -> Callable[[Doubles], tuple[float, Doubles]]:
    """Return the function from (d + 1, L) parameters to the loss and its gradient."""
    counts = hot.sum(axis=0)
    weights = np.full(len(X), 1 / len(X), dtype=np.float32)
    if exclusive:
        weights = ((1 / np.maximum(counts, 1)) / np.count_nonzero(counts)).astype(np.float32)[hot.argmax(axis=1)]

    def evaluate(theta: Doubles) -> tuple[float, Doubles]:
        rounded = theta.astype(np.float32)
        scores = X @ rounded[:-1] + rounded[-1]
        if exclusive:
            scores -= scores.max(axis=1, keepdims=True)
            losses = np.log(np.exp(scores).sum(axis=1)) - (scores * hot).sum(axis=1)
        else:
            losses = (np.logaddexp(0, scores) - scores * hot).sum(axis=1)
        error = (_probabilities(scores, exclusive) - hot) * weights[:, None]
        gradient = np.concatenate([X.T @ error, error.sum(axis=0, keepdims=True)]).astype(np.float64)
        gradient[:-1] += decay * theta[:-1]
        return float(losses @ weights) + decay / 2 * float((theta[:-1] ** 2).sum()), gradient

    return evaluate


def _probabilities(scores: NDArray[np.floating[Any]], exclusive: bool) -> Features:
    """Return the softmax over the columns, or the sigmoid of each."""
    if not exclusive:
        return np.asarray(1 / (1 + np.exp(-np.clip(scores, -60, 60))), dtype=np.float32)
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True), dtype=np.float32)


def _minimize(evaluate: Callable[[Doubles], tuple[float, Doubles]], theta: Doubles, steps: int) -> Doubles:
    """Return where L-BFGS with backtracking ends, from a start.

    Args:
        evaluate: Returns the loss and its gradient.
        theta: The start.
        steps: How many, at most; it ends before where the gradient is small or no step lowers the loss.
    """
    loss, gradient = evaluate(theta)
    pairs: list[tuple[Doubles, Doubles, float]] = []
    first = float(np.linalg.norm(gradient))
    for _ in range(steps):
        if np.linalg.norm(gradient) <= _TOLERANCE * max(first, 1e-12):
            break
        direction = _direction(gradient, pairs)
        descent = float((direction * gradient).sum())
        rate = 1.0 if pairs else 1 / max(first, 1e-12)
        for _ in range(20):
            trial = theta + rate * direction
            trial_loss, trial_gradient = evaluate(trial)
            if trial_loss <= loss + 1e-4 * rate * descent:
                break
            rate /= 2
        else:
            break
        step, change = trial - theta, trial_gradient - gradient
        curvature = float((step * change).sum())
        if curvature > 1e-12:
            pairs = [*pairs[1 - _MEMORY :], (step, change, 1 / curvature)]
        theta, loss, gradient = trial, trial_loss, trial_gradient
    return theta


def _direction(gradient: Doubles, pairs: list[tuple[Any, Any, float]]) -> Doubles:
    """Return the direction of the two-loop recursion."""
    direction, factors = -gradient, []
    for step, change, inverse in reversed(pairs):
        factors.append(inverse * float((step * direction).sum()))
        direction = direction - factors[-1] * change
    if pairs:
        step, change, inverse = pairs[-1]
        direction = direction / (inverse * float((change * change).sum()))
    for (step, change, inverse), factor in zip(pairs, reversed(factors), strict=True):
        direction = direction + (factor - inverse * float((change * direction).sum())) * step
    return direction
