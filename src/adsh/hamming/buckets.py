"""Top-k and radius search over codes that many items share: a query is compared with the distinct codes only.

Items of one code are stored next to each other, in the order of insertion. ADSH learns a few codes for each class or
label set, so ten million items may cost ten comparisons; the result is the same as that of comparing all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .distances import Words
from .hits import Hits, kth_smallest
from .query import Query
from .radius_lookup import lookup_is_cheaper, masks
from .scan import ranges


class Buckets:
    """Items grouped by code.

    Args:
        words: (d, words), the distinct codes.
        starts: (d + 1,), where each bucket starts, and the end.
        insertion_order: (n,), of the items, bucket after bucket.
    """

    name = "buckets"
    keeps_insertion_order = False

    def __init__(self, words: Words, starts: NDArray[Any], insertion_order: NDArray[Any]) -> None:
        self.words = words  # (d, words) the distinct codes; ascending if they have one word
        self.starts = starts  # (d + 1,) bucket b holds the positions starts[b] to starts[b + 1]
        self.insertion_order = insertion_order  # (n,) ascends within a bucket
        self._number: dict[bytes, int] | None = None

    def __len__(self) -> int:
        return len(self.insertion_order)

    @property
    def distinct(self) -> int:
        """How many distinct codes there are."""
        return len(self.words)

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a snapshot stores of this layout besides the codes and the order of insertion."""
        return {"starts": self.starts}

    def top(self, query: Query, k: int) -> Hits:
        """Return the k nearest."""
        distances = query.distances(self.words)
        nearest = int(distances.argmin())
        start, stop = self.starts[nearest : nearest + 2].tolist()
        least = distances[nearest]
        if stop - start >= k and np.count_nonzero(distances == least) == 1:
            return Hits(slice(start, start + k), np.full(k, least))
        return self._merge(distances, self._buckets_for(distances, k), k)

    def top_many(self, queries: list[Query], k: int) -> list[Hits]:
        """Return the k nearest of each query; equal queries are searched once."""
        found: dict[bytes, Hits] = {}
        hits = []
        for query in queries:
            name = query.identity()
            if name not in found:
                found[name] = self.top(query, k)
            hits.append(found[name])
        return hits

    def ball(self, query: Query, limit: float) -> Hits:
        """Return all at a distance of at most `limit`, in any order."""
        if not query.is_asymmetric and lookup_is_cheaper(query.bits, int(limit), self.distinct):
            flips, far = masks(query.bits, int(limit))
            codes = query.words[0] ^ flips
            at = np.minimum(np.searchsorted(self.words[:, 0], codes), self.distinct - 1)
            exists = self.words[at, 0] == codes
            return self._expand(at[exists], far[exists])
        distances = query.distances(self.words)
        near = np.flatnonzero(distances <= limit)
        return self._expand(near, distances[near])

    def find(self, words: Words, insertion_order: NDArray[Any]) -> NDArray[np.int64]:
        """Return the positions of those of these items that are stored here."""
        found = []
        for code, order in zip(words, insertion_order, strict=True):
            bucket = self._bucket(code)
            if bucket >= 0:
                start, stop = self.starts[bucket : bucket + 2].tolist()
                at = start + int(np.searchsorted(self.insertion_order[start:stop], order))
                if at < stop and self.insertion_order[at] == order:
                    found.append(at)
        return np.array(found, dtype=np.int64)

    def item_words(self) -> Words:
        """Return the code of each item, by position."""
        return np.repeat(self.words, self.starts[1:].astype(np.int64) - self.starts[:-1], axis=0)

    def words_at(self, positions: NDArray[np.int64]) -> Words:
        """Return the codes of the items at these positions."""
        return self.words[np.searchsorted(self.starts, positions, side="right") - 1]

    def _bucket(self, code: NDArray[np.uint64]) -> int:
        if self.words.shape[1] == 1:
            at = int(np.searchsorted(self.words[:, 0], code[0]))
            return at if at < self.distinct and self.words[at, 0] == code[0] else -1
        if self._number is None:
            self._number = {row.tobytes(): number for number, row in enumerate(self.words)}
        return self._number.get(code.tobytes(), -1)

    def _buckets_for(self, distances: NDArray[Any], k: int) -> NDArray[np.int64]:
        """Return the buckets of the k nearest items, and all buckets that tie with the last of those."""
        near = np.arange(len(distances))
        if len(distances) > k:  # k buckets hold k items or more
            near = np.flatnonzero(distances <= kth_smallest(distances, k))
        order = np.argsort(distances[near], kind="stable")
        total = np.cumsum(self.starts[near[order] + 1].astype(np.int64) - self.starts[near[order]])
        last = min(int(np.searchsorted(total, k)), len(order) - 1)
        chosen: NDArray[np.int64] = near[distances[near] <= distances[near[order[last]]]]
        return chosen

    def _merge(self, distances: NDArray[Any], buckets: NDArray[np.int64], k: int) -> Hits:
        """Return the k nearest items of these buckets.

        Args:
            distances: (d,), of all buckets.
            buckets: the numbers of those to merge.
            k: how many items.

        Returns:
            The hits, in order of distance and insertion.
        """
        starts = self.starts[buckets].astype(np.int64)
        lengths = np.minimum(self.starts[buckets + 1].astype(np.int64) - starts, k)
        positions, far = ranges(starts, lengths), np.repeat(distances[buckets], lengths)
        order = np.lexsort((self.insertion_order[positions], far))[:k]
        return Hits(positions[order], far[order])

    def _expand(self, buckets: NDArray[np.int64], far: NDArray[Any]) -> Hits:
        """Return all items of these buckets."""
        starts = self.starts[buckets].astype(np.int64)
        lengths = self.starts[buckets + 1].astype(np.int64) - starts
        if len(buckets) == 1:
            start, length = int(starts[0]), int(lengths[0])
            return Hits(slice(start, start + length), np.full(length, far[0]))
        return Hits(ranges(starts, lengths), np.repeat(far, lengths))
