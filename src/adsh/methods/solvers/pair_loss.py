"""The pair loss of Lin:Lin and Lin:V (Neyshabur et al., 2013), tabulated: inner products of codes take few values.

    s  +1 for a similar pair, -1 for another
    y  u.v, the inner product of a query's code and a database point's: an integer from -c to c
    theta  the threshold between similar and dissimilar inner products

    loss(s, y) = w(s) sqrt(log(1 + exp(-s (y - theta)))),  w .7 for similar pairs and .3 for others

With one bit left out of y, M(s, y) = loss(s, y - 1) - loss(s, y + 1) says how much a pair gains where the two bits
agree, so that the objective falls exactly as u'M v rises.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

SIMILAR, DISSIMILAR = 0.7, 0.3
_BLOCK = 1 << 20  # pairs looked up at a time


def loss(similar: NDArray[np.bool_], y: Doubles, theta: float) -> Doubles:
    """Return the loss of pairs with these inner products.

    Args:
        similar: Whether each pair is similar.
        y: Their inner products.
        theta: The threshold.

    Returns:
        The loss of each pair.
    """
    s = np.where(similar, 1.0, -1.0)
    weighted: Doubles = np.where(similar, SIMILAR, DISSIMILAR) * np.sqrt(np.logaddexp(0, -s * (y - theta)))
    return weighted


def gains(similar: NDArray[np.bool_], y: Floats, bits: int, theta: float) -> Floats:
    """Return M of pairs, looked up in a table.

    Args:
        similar: Whether each pair is similar.
        y: The inner products of the other bits.
        bits: The code length.
        theta: The threshold of the loss.

    Returns:
        M of each pair, in the shape of `y`.
    """
    values = np.arange(-bits - 1, bits + 2, dtype=np.float64)
    losses = np.stack([loss(np.full(len(values), kind), values, theta) for kind in (False, True)])  # (2, 2c + 3)
    table = np.zeros_like(losses, dtype=np.float32)
    table[:, 1:-1] = losses[:, :-2] - losses[:, 2:]
    found = np.empty(y.shape, dtype=np.float32)
    step = max(1, _BLOCK // max(y.shape[1], 1))
    for rows in (slice(start, start + step) for start in range(0, len(y), step)):
        at = y[rows].astype(np.int64) + (bits + 1)
        found[rows] = table.ravel()[at + len(values) * similar[rows]]
    return found


def objective(similar: NDArray[np.bool_], y: Floats, theta: float, counts: Doubles) -> float:
    """Return the mean loss of the pairs; column k counts for `counts[k]` points.

    Args:
        similar: (m, K) whether each pair is similar.
        y: (m, K) their inner products.
        theta: The threshold of the loss.
        counts: (K,) how many points each column stands for.

    Returns:
        The mean over all points.
    """
    return float((loss(similar, y.astype(np.float64), theta) @ counts).sum() / (len(y) * counts.sum()))


def best_threshold(similar: NDArray[np.bool_], y: Floats, bits: int, theta: float, counts: Doubles) -> float:
    """Return the theta of least loss on these pairs, among the multiples of 1/2 from -c to c and the current one.

    Args:
        similar: (m, K) whether each pair is similar.
        y: (m, K) their inner products.
        bits: The code length.
        theta: The current threshold.
        counts: (K,) how many points each column stands for.

    Returns:
        The threshold; the current one if no other is better.
    """
    cells = (y.astype(np.int64) + bits + (2 * bits + 1) * similar).ravel()
    weights = np.broadcast_to(counts, y.shape).ravel()
    pairs = np.bincount(cells, weights=weights, minlength=2 * (2 * bits + 1)).reshape(2, -1)
    values = np.arange(-bits, bits + 1, dtype=np.float64)

    def total(threshold: float) -> float:
        return float(sum(pairs[kind] @ loss(np.full(len(values), bool(kind)), values, threshold) for kind in (0, 1)))

    choices: list[float] = [theta, *np.arange(-bits, bits + 0.5, 0.5).tolist()]
    return min(choices, key=total)
