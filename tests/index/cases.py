"""Small sets of items for the tests of indexes."""

from __future__ import annotations

import numpy as np

from adsh.hamming.bits import pack


def random_codes(n, bits=48, distinct=0, seed=0):
    """Packed codes; `distinct` of them, or each its own."""
    rng = np.random.default_rng(seed)
    table = pack(rng.choice([-1, 1], size=(distinct or n, bits)))
    return table[rng.integers(0, distinct, n)] if distinct else table


def keys(n, start=0):
    return [f"item {number}" for number in range(start, start + n)]


def answer(matches):
    """What was found, to compare."""
    return matches.keys, matches.distances.tolist()
