"""Hamming search in the plainest NumPy: unpack, count, sort. The oracle of every faster way."""

from __future__ import annotations

import numpy as np


def distances(code, codes, bits):
    """Differing bits of one packed code and each of several."""
    unpacked = np.unpackbits(codes, axis=1, count=bits)
    return (unpacked != np.unpackbits(code, count=bits)).sum(axis=1)


def asymmetric(outputs, codes, bits):
    """(bits - u.v) / 2."""
    return (bits - (2.0 * np.unpackbits(codes, axis=1, count=bits) - 1) @ outputs) / 2


def top(far, k):
    """Positions of the k smallest; equals in the order given."""
    return np.argsort(far, kind="stable")[:k]


def within(far, radius):
    """Positions within the radius, nearest first; equals in the order given."""
    order = np.argsort(far, kind="stable")
    return order[far[order] <= radius]
