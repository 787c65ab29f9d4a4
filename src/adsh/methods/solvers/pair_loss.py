"""The loss of Lin:Lin and Lin:V on pairs, as a table: an inner product of codes takes few values.

    s  +1 for a similar pair, -1 for another
    y  u.v, the inner product of a query's code and a database point's: a whole number from -c to c
    theta  the threshold that parts similar from dissimilar inner products

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


def loss(similar: NDArray[np.bool_], y: Doubles, theta: float) -> Doubles:
    """The loss of pairs of these inner products."""
    s = np.where(similar, 1.0, -1.0)
    weighted: Doubles = np.where(similar, SIMILAR, DISSIMILAR) * np.sqrt(np.logaddexp(0, -s * (y - theta)))
    return weighted


def gains(similar: NDArray[np.bool_], y: Floats, bits: int, theta: float) -> Floats:
    """M of pairs with these inner products of the other bits; looked up, not computed, pair by pair."""
    values = np.arange(-bits - 1, bits + 2, dtype=np.float64)
    losses = np.stack([loss(np.full(len(values), kind), values, theta) for kind in (False, True)])  # (2, 2c + 3)
    table = np.zeros_like(losses, dtype=np.float32)
    table[:, 1:-1] = losses[:, :-2] - losses[:, 2:]
    at = y.astype(np.int64) + (bits + 1)
    return table.ravel()[at + len(values) * similar]


def objective(similar: NDArray[np.bool_], y: Floats, theta: float, counts: Doubles) -> float:
    """The mean loss of the pairs, a column counting for so many points."""
    return float((loss(similar, y.astype(np.float64), theta) @ counts).sum() / (len(y) * counts.sum()))


def best_threshold(similar: NDArray[np.bool_], y: Floats, bits: int, theta: float, counts: Doubles) -> float:
    """The theta of least loss on these pairs, among halves from -c to c and the one there is."""
    cells = (y.astype(np.int64) + bits + (2 * bits + 1) * similar).ravel()
    weights = np.broadcast_to(counts, y.shape).ravel()
    pairs = np.bincount(cells, weights=weights, minlength=2 * (2 * bits + 1)).reshape(2, -1)
    values = np.arange(-bits, bits + 1, dtype=np.float64)

    def total(threshold: float) -> float:
        return float(sum(pairs[kind] @ loss(np.full(len(values), bool(kind)), values, threshold) for kind in (0, 1)))

    choices: list[float] = [theta, *np.arange(-bits, bits + 0.5, 0.5).tolist()]
    return min(choices, key=total)
