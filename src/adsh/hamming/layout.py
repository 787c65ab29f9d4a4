"""Which way codes are searched is chosen from the codes: grouped where they repeat, scanned where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bits import number_rows
from .buckets import Buckets
from .query import Words
from .scan import Scan

Layout = Buckets | Scan

_REPEATS = 2  # items a code on average, from which grouping pays


def arrange(words: Words, places: NDArray[Any]) -> tuple[Layout, NDArray[Any] | None]:
    """The codes laid out for searching, and the order their items take in it (None: as given).

    `places` says when each item was inserted, and ascends.
    """
    numbers = words[:, 0] if words.shape[1] == 1 else number_rows(words)[1]
    order = np.argsort(numbers, kind="stable").astype(compact_type(len(numbers)))
    ordered = numbers[order]
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, len(order)), bool), ordered[1:] != ordered[:-1]]))
    del ordered
    if len(firsts) * _REPEATS > len(order):
        return Scan(words, places, order), None
    distinct = words[order[firsts]]
    del numbers
    starts = np.append(firsts, len(order)).astype(compact_type(len(order)))
    return Buckets(distinct, starts, places[order]), order


def compact_type(largest: int) -> type[np.unsignedinteger[Any]]:
    """4 bytes where they hold the number, else 8."""
    return np.uint32 if largest < 1 << 32 else np.uint64
