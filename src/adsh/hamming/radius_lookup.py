"""Radius search without a scan: enumerate every code within a small radius and look it up among the sorted codes."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from .bits import as_words

_LOOK_UP = 600  # looking one code up among ten million costs what comparing this many in a scan does: 0.7 us


def lookup_is_cheaper(bits: int, radius: int, codes: int) -> bool:
    """Whether looking up all codes within the radius is cheaper than comparing with all codes.

    Args:
        bits: the length of the codes; longer ones than 64 bits are never looked up.
        radius: the largest distance.
        codes: how many distinct codes there are.

    Returns:
        True if it is.
    """
    if bits > 64:
        return False
    probes = 0
    for flipped in range(min(radius, bits) + 1):
        probes += comb(bits, flipped)
        if probes * _LOOK_UP > codes:
            return False
    return True


def largest_radius(bits: int, codes: int) -> int:
    """Return the largest radius whose codes are looked up; -1 if none are."""
    radius = -1
    while radius < bits and lookup_is_cheaper(bits, radius + 1, codes):
        radius += 1
    return radius


@lru_cache(maxsize=16)
def masks(bits: int, radius: int) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return what to XOR a code with to get every code within the radius, and the distance of each of those."""
    singles = as_words(np.packbits(np.eye(bits, dtype=np.uint8), axis=1))[:, 0]
    found = [np.zeros(1, dtype=np.uint64)]
    for flipped in range(1, min(radius, bits) + 1):
        choices = np.array(list(combinations(range(bits), flipped)), dtype=np.intp)  # (probes, flipped)
        found.append(np.bitwise_or.reduce(singles[choices], axis=1))
    distances = np.repeat(np.arange(len(found), dtype=np.uint8), [len(flips) for flips in found])
    return np.concatenate(found), distances
