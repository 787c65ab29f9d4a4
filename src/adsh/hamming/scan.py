"""Top-k and radius search over codes that are nearly all distinct: every code is compared.

faiss does it where it is installed (`adsh[search]`), NumPy otherwise. Both go through the codes in order and keep the
first of equals, so equal distances come in the order of the codes: here that of insertion.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .hits import Hits, kth_smallest
from .query import Query, Words, hamming
from .radius_lookup import masks, pays

_AT_A_TIME = 1 << 16
_FAISS_FROM = 4096  # codes: below this a call costs more than the work
_FAISS_K = 4096  # faiss keeps k candidates for each distance: past this its tables outgrow the cache


@lru_cache(maxsize=1)
def faiss_module() -> Any:
    """The faiss package, or None where it is not installed."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin on busy cores cost it a hundredfold
    try:
        import faiss
    except ImportError:
        return None
    return faiss


class Scan:
    """Codes in insertion order."""

    name = "scan"

    def __init__(self, words: Words, places: NDArray[Any], by_code: NDArray[Any]) -> None:
        self.words = words  # (n, words)
        self.places = places  # (n,) ascending
        self.by_code = by_code  # (n,) positions in order of code: for looking codes up

    def __len__(self) -> int:
        return len(self.words)

    def top(self, query: Query, k: int) -> Hits:
        """The nearest k."""
        if query.table is not None:
            return self._ordered(query.distances(self.words), k)
        return self.top_many([query], k)[0]

    def top_many(self, queries: list[Query], k: int) -> list[Hits]:
        """The nearest k of each of several queries, which faiss shares out among threads."""
        k = min(k, len(self))
        if not k or any(query.table is not None for query in queries):
            return [self.top(query, k) if k else Hits(slice(0, 0), np.zeros(0, np.uint8)) for query in queries]
        faiss = faiss_module() if len(self) >= _FAISS_FROM and k <= _FAISS_K else None
        if faiss is None:
            return [Hits(*first_k(self.words, query.words, k)) for query in queries]
        codes = np.ascontiguousarray(np.stack([query.words for query in queries])).view(np.uint8)
        threads = faiss.omp_get_max_threads()
        try:
            if len(queries) == 1:
                faiss.omp_set_num_threads(1)
            distances, positions = faiss.knn_hamming(codes, self.words.view(np.uint8), k, variant="mc")
        finally:
            faiss.omp_set_num_threads(threads)
        return [Hits(*row) for row in zip(positions, distances, strict=True)]

    def ball(self, query: Query, limit: float) -> Hits:
        """All at a distance of at most `limit`, in any order."""
        if query.table is None and pays(query.bits, int(limit), len(self)):
            flips, far = masks(query.bits, int(limit))
            positions, which = self._look_up(query.words[0] ^ flips)
            return Hits(positions, far[which])
        distances = query.distances(self.words)
        near = np.flatnonzero(distances <= limit)
        return Hits(near, distances[near])

    def find(self, words: Words, places: NDArray[Any]) -> NDArray[np.int64]:
        """The positions of those of these items that are here."""
        at = np.minimum(np.searchsorted(self.places, places), len(self) - 1)
        here: NDArray[np.int64] = at[(self.places[at] == places) & (self.words[at] == words).all(axis=1)]
        return here

    def item_words(self) -> Words:
        """The code of each item, by position."""
        return self.words

    def words_at(self, positions: NDArray[np.int64]) -> Words:
        """The codes of the items at these positions."""
        return self.words[positions]

    def _ordered(self, distances: NDArray[Any], k: int) -> Hits:
        near = np.flatnonzero(distances <= kth_smallest(distances, k))
        order = np.argsort(distances[near], kind="stable")[:k]
        return Hits(near[order], distances[near][order])

    def _look_up(self, codes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The positions that have one of these codes (of one word), and which of them."""
        low, high = (_bisect(self.words[:, 0], self.by_code, codes, after=after) for after in (False, True))
        lengths = high - low
        return self.by_code[ranges(low, lengths)].astype(np.int64), np.repeat(np.arange(len(codes)), lengths)


def ranges(starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.int64]:
    """start, start + 1, … of each range, one after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(np.asarray(starts, dtype=np.int64) - (ends - lengths), lengths) + np.arange(total)


def _bisect(values: NDArray[Any], order: NDArray[Any], wanted: NDArray[Any], *, after: bool) -> NDArray[np.int64]:
    """np.searchsorted(values[order], wanted) without the copy that values[order] is."""
    low = np.zeros(len(wanted), dtype=np.int64)
    high = np.full(len(wanted), len(order), dtype=np.int64)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        found = values[order[np.minimum(middle, len(order) - 1)]]
        right = ((found <= wanted) if after else (found < wanted)) & open_
        low = np.where(right, middle + 1, low)
        high = np.where(open_ & ~right, middle, high)
    return low


def first_k(words: Words, code: NDArray[np.uint64], k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The nearest k of at least k, in order of distance, then of position, in NumPy alone.

    Once k are held, a later code counts only if it is nearer than the farthest of them: few are.
    """
    dtype = np.min_scalar_type(words.shape[1] * 64)
    scratch = np.empty(min(len(words), _AT_A_TIME), dtype=np.uint64)
    out = np.empty(len(scratch), dtype=dtype)
    positions, distances = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=dtype)
    limit: Any = None
    for start in range(0, len(words), _AT_A_TIME):
        block = words[start : start + _AT_A_TIME]
        here = out[: len(block)]
        hamming(block, code, here, scratch)
        if limit is None and len(block) > k:
            near = np.flatnonzero(here <= kth_smallest(here, k))
        else:
            near = np.flatnonzero(here < limit) if limit is not None else np.arange(len(block))
        if len(near):
            positions = np.concatenate([positions, near + start])
            distances = np.concatenate([distances, here[near]])
            if len(positions) >= k:
                order = np.argsort(distances, kind="stable")[:k]
                positions, distances = positions[order], distances[order]
                limit = distances[-1]
    return positions, distances
