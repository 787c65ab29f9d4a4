"""Count the items of each grade at each Hamming distance from each query: all that most metrics read.

Distances take c + 1 values, so nothing needs sorting, and nothing of size queries x database exists beyond
a block.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..hamming.bits import as_words, number_rows
from .counters import ByCode, ByItem, Counter, Tally
from .pairing import Pairing

_THREADS_FROM = 1 << 28  # pairs from which a second thread is worth starting


def count(pairing: Pairing, *, graded: bool = False, threads: int | None = None, device: str = "auto") -> Tally:
    """Return (q, grades, c + 1), the items of each grade at each distance from each distinct query.

    Args:
        pairing: queries and database.
        graded: whether to count all grades from 0 to the highest; otherwise they are 0 and 1.
        threads: how many count; None for one a core.
        device: as of `Ranking`.

    Returns:
        int64 array (q, grades, c + 1).
    """
    q, n = len(pairing.query_codes), len(pairing.database_codes)
    grades = pairing.relevance.highest + 1 if graded else 2
    counter = _counter(pairing, grades, device)
    counts = np.zeros((q, grades, pairing.bits + 1), dtype=np.int64)
    if q * n < _THREADS_FROM or not counter.threaded:
        threads = 1
    threads = threads or _cores()
    rounds = -(-q // (threads * counter.step))
    step = -(-q // (threads * rounds))  # blocks of one size, as many for each thread
    blocks = [slice(start, start + step) for start in range(0, q, step)]

    def fill(block: slice) -> None:
        counter.count(block, counts[block])

    if len(blocks) == 1 or threads == 1:
        for block in blocks:
            fill(block)
    else:
        with ThreadPoolExecutor(threads) as pool:  # NumPy releases the interpreter while it counts
            list(pool.map(fill, blocks))
    if pairing.leave_one_out:  # an item finds itself at distance 0, with all of its labels
        own = np.minimum(pairing.own_grades(), grades - 1)
        counts[np.arange(q), own, 0] -= 1
    return counts


def _counter(pairing: Pairing, grades: int, device: str) -> Counter:
    """Choose the cheaper counter: by code, or by item, on the GPU where there is one.

    Measured: a step of ByCode costs up to 4 of ByItem, and one over its groups, once for each kind of query, 1.

    Args:
        pairing: queries and database.
        grades: how many grades are counted.
        device: as of `Ranking`.

    Returns:
        The counter, ready to count.
    """
    q, n = len(pairing.query_codes), len(pairing.database_codes)
    kinds = len(np.unique(pairing.query_kinds))
    codes, numbers = number_rows(as_words(pairing.database_codes))
    # To find the groups costs time, and there are rarely fewer than columns.
    if 4 * q * codes + kinds * pairing.relevance.columns <= q * n:
        by_code = ByCode(pairing, grades, codes, numbers)
        if 4 * q * codes + kinds * by_code.groups <= q * n:
            return by_code
    torch_device = _torch_device(device)
    if torch_device is None:
        return ByItem(pairing, grades)
    from .torch_counter import OnDevice

    return OnDevice(pairing, grades, torch_device)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _torch_device(device: str) -> str | None:
    """Return the torch device to count on, or None for NumPy: torch is imported only where a device is requested."""
    if device == "cpu":
        return None
    if device != "auto":
        return device
    torch = sys.modules.get("torch")
    return "cuda" if torch is not None and torch.cuda.is_available() else None
