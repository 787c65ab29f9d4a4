"""Top-k and radius search over codes that are nearly all distinct: the query is compared with every code.

By faiss if it is installed (`adsh[search]`), else by NumPy. Both read the codes in order and keep the first of equals,
so equal distances come in the order of the codes, which is that of insertion.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .distances import Words, hamming_distances
from .hits import Hits, kth_smallest
from .query import Query
from .radius_lookup import lookup_is_cheaper, masks

_AT_A_TIME = 1 << 16
_FAISS_FROM = 4096  # codes: with fewer, the call costs more than the search
_FAISS_K = 4096  # faiss keeps k candidates for each distance: with more, they outgrow the cache


@lru_cache(maxsize=1)
def faiss_module() -> Any:
    """Return the faiss package; None if it is not installed."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin on busy cores slow it a hundredfold
    try:
        import faiss
    except ImportError:
        return None
    return faiss


class Scan:
    """Codes in the order of insertion.

    Args:
        words: (n, words), the codes.
        insertion_order: (n,), ascending.
        by_code: (n,), the positions in order of code.
    """

    name = "scan"
    keeps_insertion_order = True

    def __init__(self, words: Words, insertion_order: NDArray[Any], by_code: NDArray[Any]) -> None:
        self.words = words  # (n, words)
        self.insertion_order = insertion_order  # (n,) ascending
        self.by_code = by_code  # (n,) positions in order of code, to look codes up

    def __len__(self) -> int:
        return len(self.words)

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a snapshot stores of this layout besides the codes and the order of insertion."""
        return {"by_code": self.by_code}

    def top(self, query: Query, k: int) -> Hits:
        """Return the k nearest."""
        if query.is_asymmetric:
            return self._nearest(query.distances(self.words), k)
        return self.top_many([query], k)[0]

    def top_many(self, queries: list[Query], k: int) -> list[Hits]:
        """Return the k nearest of each query; faiss distributes the queries over threads."""
        k = min(k, len(self))
        if not k or any(query.is_asymmetric for query in queries):
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
        """Return all at a distance of at most `limit`, in any order."""
        if not query.is_asymmetric and lookup_is_cheaper(query.bits, int(limit), len(self)):
            flips, far = masks(query.bits, int(limit))
            positions, which = self._look_up(query.words[0] ^ flips)
            return Hits(positions, far[which])
        distances = query.distances(self.words)
        near = np.flatnonzero(distances <= limit)
        return Hits(near, distances[near])

    def find(self, words: Words, insertion_order: NDArray[Any]) -> NDArray[np.int64]:
        """Return the positions of those of these items that are stored here."""
        at = np.minimum(np.searchsorted(self.insertion_order, insertion_order), len(self) - 1)
        same = (self.insertion_order[at] == insertion_order) & (self.words[at] == words).all(axis=1)
        found: NDArray[np.int64] = at[same]
        return found

    def item_words(self) -> Words:
        """Return the code of each item, by position."""
        return self.words

    def words_at(self, positions: NDArray[np.int64]) -> Words:
        """Return the codes of the items at these positions."""
        return self.words[positions]

    def _nearest(self, distances: NDArray[Any], k: int) -> Hits:
        near = np.flatnonzero(distances <= kth_smallest(distances, k))
        order = np.argsort(distances[near], kind="stable")[:k]
        return Hits(near[order], distances[near][order])

    def _look_up(self, codes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions that have one of these codes (of one word), and the number of the code that each has."""
        low, high = (_bisect(self.words[:, 0], self.by_code, codes, after=after) for after in (False, True))
        lengths = high - low
        return self.by_code[ranges(low, lengths)].astype(np.int64), np.repeat(np.arange(len(codes)), lengths)


def ranges(starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return start, start + 1, … of each range, one range after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(np.asarray(starts, dtype=np.int64) - (ends - lengths), lengths) + np.arange(total)


def _bisect(values: NDArray[Any], order: NDArray[Any], targets: NDArray[Any], *, after: bool) -> NDArray[np.int64]:
    """Return np.searchsorted(values[order], targets) without the copy values[order].

    Args:
        values: (n,).
        order: (n,), the positions that sort them.
        targets: what to look for.
        after: whether to return the place after equal values, as side="right" does.

    Returns:
        Array (len(targets),) of places in the order.
    """
    low = np.zeros(len(targets), dtype=np.int64)
    high = np.full(len(targets), len(order), dtype=np.int64)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        found = values[order[np.minimum(middle, len(order) - 1)]]
        right = ((found <= targets) if after else (found < targets)) & open_
        low = np.where(right, middle + 1, low)
        high = np.where(open_ & ~right, middle, high)
    return low


def first_k(words: Words, code: NDArray[np.uint64], k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the k nearest of at least k codes, in order of distance, then of position, with NumPy alone.

    Once there are k candidates, a later code counts only if it is nearer than the farthest of them: few are.

    Args:
        words: (n, words) the codes.
        code: (words,) the query.
        k: how many.

    Returns:
        Their positions and distances.
    """
    dtype = np.min_scalar_type(words.shape[1] * 64)
    scratch = np.empty(min(len(words), _AT_A_TIME), dtype=np.uint64)
    out = np.empty(len(scratch), dtype=dtype)
    positions, distances = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=dtype)
    limit: Any = None
    for start in range(0, len(words), _AT_A_TIME):
        block = words[start : start + _AT_A_TIME]
        far = out[: len(block)]
        hamming_distances(block, code, far, scratch)
        if limit is None and len(block) > k:
            near = np.flatnonzero(far <= kth_smallest(far, k))
        else:
            near = np.flatnonzero(far < limit) if limit is not None else np.arange(len(block))
        if len(near):
            positions = np.concatenate([positions, near + start])
            distances = np.concatenate([distances, far[near]])
            if len(positions) >= k:
                order = np.argsort(distances, kind="stable")[:k]
                positions, distances = positions[order], distances[order]
                limit = distances[-1]
    return positions, distances
