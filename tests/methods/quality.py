"""How the tests evaluate a fitted method, and small cases they share."""

from __future__ import annotations

import numpy as np

from adsh import metrics


def mean_average_precision(method, split) -> float:
    """Expected over ties, of the split's queries against the fitted database codes."""
    return metrics.mean_average_precision(
        method.encode(split.queries), method.database_codes_, split.query_labels, split.labels, bits=method.bits
    )


def all_signs(count: int) -> np.ndarray:
    """(2^count, count) every vector of +1/-1."""
    return np.array(np.meshgrid(*[[1, -1]] * count, indexing="ij")).reshape(count, -1).T


def similarity(hot: np.ndarray) -> np.ndarray:
    """(n, n) of 1 where two multi-hot rows share a label, 0 elsewhere: the matrix that the methods never build."""
    return (hot @ hot.T > 0).astype(float)
