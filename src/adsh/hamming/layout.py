"""Choose how codes are searched: grouped if they repeat, scanned if nearly all are distinct."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bits import number_rows
from .buckets import Buckets
from .distances import Words
from .scan import Scan

Layout = Buckets | Scan

_REPEATS = 2  # items per code on average, from which grouping is worth it


def choose_layout(words: Words, insertion_order: NDArray[Any]) -> tuple[Layout, NDArray[Any] | None]:
    """Lay out codes for searching.

    Args:
        words: (n, words) the codes, in the order of insertion.
        insertion_order: (n,) ascending numbers.

    Returns:
        The layout, and the positions of its items among those given; None if they are in the same order.
    """
    numbers = words[:, 0] if words.shape[1] == 1 else number_rows(words)[1]
    order = np.argsort(numbers, kind="stable").astype(compact_type(len(numbers)))
    ordered = numbers[order]
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, len(order)), bool), ordered[1:] != ordered[:-1]]))
    del ordered
    if len(firsts) * _REPEATS > len(order):
        return Scan(words, insertion_order, order), None
    distinct = words[order[firsts]]
    del numbers
    starts = np.append(firsts, len(order)).astype(compact_type(len(order)))
    return Buckets(distinct, starts, insertion_order[order]), order


def compact_type(largest: int) -> type[np.unsignedinteger[Any]]:
    """Return the type of 4 bytes if it holds this number, else that of 8."""
    return np.uint32 if largest < 1 << 32 else np.uint64
