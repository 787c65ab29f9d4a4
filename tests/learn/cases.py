"""Small databases of every kind of label, with their multi-hot labels for the reference."""

from __future__ import annotations

import numpy as np

KINDS = ("single-label", "multi-label", "all-distinct", "some-unlabelled")


def labelled(kind: str, n: int, tags: int, rng: np.random.Generator, density: float = 0.35):
    """Labels as a user gives them, and as (n, L) multi-hot. There always is a dissimilar pair."""
    if kind == "all-distinct":
        return np.arange(n), np.eye(n, dtype=int)
    if kind == "single-label":
        labels = rng.integers(0, tags, n)
        labels[:2] = 0, 1
        return labels, np.eye(tags, dtype=int)[labels]
    hot = (rng.random((n, tags)) < density).astype(int)
    if kind == "multi-label":
        empty = np.flatnonzero(hot.sum(axis=1) == 0)
        hot[empty, rng.integers(0, tags, len(empty))] = 1
    hot[:2] = 0
    hot[0, 0] = hot[1, 1] = 1
    return hot, hot


def outputs(m: int, bits: int, rng: np.random.Generator, saturated: bool = False) -> np.ndarray:
    """Continuous outputs in -1 .. 1, or outputs that are all +1/-1."""
    U = np.tanh(rng.normal(size=(m, bits)) * 2)
    return np.where(U >= 0, 1.0, -1.0) if saturated else U


def draw(table, m: int, rng: np.random.Generator) -> np.ndarray:
    """Omega, or all there is to sample from where that is less."""
    return table.draw(min(m, table.num_sampleable), rng)
