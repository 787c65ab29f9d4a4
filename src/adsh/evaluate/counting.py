"""How many items of each grade lie at each Hamming distance from each query: all that most metrics read.

Distances take c + 1 values, so nothing needs sorting, and nothing of size queries x database exists beyond
a block.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes, as_words, number_rows
from .counters import ByCode, ByItem, Counter, Tally
from .relevance import Relevance

_GRADES = 1 << 24  # grades held at a time
_QUERIES = 64  # counted at a time
_THREADS_FROM = 1 << 28  # pairs from which a second thread is worth starting


@dataclass(frozen=True)
class Pairing:
    """Queries, database and who is relevant to whom. Queries with one code and one kind are held once."""

    query_codes: Codes  # (q, bytes) of the distinct queries, those of one kind side by side
    query_kinds: NDArray[np.integer[Any]]  # (q,)
    places: NDArray[np.int64]  # (queries,) where each is among the distinct ones
    database_codes: Codes  # (n, bytes)
    relevance: Relevance
    bits: int

    @classmethod
    def of(cls, query_codes: Codes, database_codes: Codes, relevance: Relevance, bits: int) -> Pairing:
        """Merges equal queries: they have the same ranking, and so the same metrics."""
        kinds = relevance.query_kinds
        count, places = number_rows(np.column_stack([kinds.astype(np.uint64), as_words(query_codes)]))
        first = np.empty(count, dtype=np.int64)
        first[places] = np.arange(len(places))  # any of the equal ones
        return cls(query_codes[first], kinds[first], places, database_codes, relevance, bits)


def count(pairing: Pairing, *, graded: bool = False, threads: int | None = None, device: str = "auto") -> Tally:
    """(q, grades, c + 1) items of each grade at each distance from each distinct query.

    Grades are 0 and 1, or all from 0 to the highest if `graded`.
    """
    q, n = len(pairing.query_codes), len(pairing.database_codes)
    grades = pairing.relevance.highest + 1 if graded else 2
    counter = _counter(pairing, grades, device)
    counts = np.zeros((q, grades, pairing.bits + 1), dtype=np.int64)
    step = max(1, min(_QUERIES, _GRADES // pairing.relevance.columns))
    blocks = [slice(start, start + step) for start in range(0, q, step)]

    def fill(block: slice) -> None:
        counter.count(pairing.query_codes[block], pairing.query_kinds[block], counts[block])

    threads = threads or len(os.sched_getaffinity(0))
    if threads > 1 and q * n >= _THREADS_FROM and isinstance(counter, ByItem):
        with ThreadPoolExecutor(threads) as pool:  # NumPy lets go of the interpreter while it counts
            list(pool.map(fill, blocks))
    else:
        for block in blocks:
            fill(block)
    return counts


def _counter(pairing: Pairing, grades: int, device: str) -> Counter:
    """The cheapest way to count these. The factors are the measured costs of a step, relative to one of ByItem."""
    on = _torch_device(device)
    if on is not None:
        from .torch_counter import OnDevice

        return OnDevice(pairing.database_codes, pairing.relevance, pairing.bits, grades, on)
    inputs = pairing.database_codes, pairing.relevance, pairing.bits, grades
    q, n = len(pairing.query_codes), len(pairing.database_codes)
    codes = max(len(np.unique(column)) for column in as_words(pairing.database_codes).T)  # at least so many
    kinds = len(np.unique(pairing.query_kinds))
    if 4 * q * codes + kinds * pairing.relevance.columns <= q * n:
        by_code = ByCode(*inputs)
        if 4 * q * by_code.codes + kinds * by_code.groups <= q * n:
            return by_code
    return ByItem(*inputs)


def _torch_device(device: str) -> str | None:
    """The torch device to count on, or None for NumPy: torch is imported only where a GPU is asked for."""
    if device == "cpu":
        return None
    if device != "auto":
        return device
    torch = sys.modules.get("torch")
    return "cuda" if torch is not None and torch.cuda.is_available() else None
