"""Rows of bytes as machine words, and the distinct ones among them. The codes and the label sets are both such rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def as_words(rows: Bytes) -> NDArray[np.uint64]:
    """Return rows of bytes as (n, words) uint64, zero-padded; equal rows have equal words."""
    n, width = rows.shape
    words = -(-width // 8)
    if width == words * 8:
        return np.ascontiguousarray(rows).view(np.uint64)
    padded = np.zeros((n, words * 8), dtype=np.uint8)
    padded[:, :width] = rows
    return padded.view(np.uint64)


def unique_rows(rows: Bytes) -> tuple[Bytes, NDArray[np.intp], NDArray[np.int64]]:
    """Return the distinct rows, the position of each row among them, and how often each occurs.

    The distinct rows are in the order of their words, which is the order that label sets are numbered in.
    """
    words = as_words(rows)
    key = words[:, 0] if words.shape[1] == 1 else words.view([("", np.uint64)] * words.shape[1]).ravel()
    _, first, inverse, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    return rows[first], inverse.ravel(), counts
