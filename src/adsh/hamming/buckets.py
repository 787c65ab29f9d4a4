"""Top-k and radius search over codes that many items share: a query is compared with the distinct codes only.

Items of one code are neighbours, in insertion order. ADSH's codes are a few for each class or label set, so ten
million items may be ten comparisons; the answer is the same as that of comparing all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .hits import Hits, kth_smallest
from .query import Query, Words
from .radius_lookup import masks, pays
from .scan import ranges


class Buckets:
    """Items grouped by code."""

    name = "buckets"

    def __init__(self, words: Words, starts: NDArray[Any], places: NDArray[Any]) -> None:
        self.words = words  # (d, words) the distinct codes; ascending where they are one word
        self.starts = starts  # (d + 1,) bucket b holds the positions starts[b] to starts[b + 1]
        self.places = places  # (n,) insertion order, ascending within a bucket
        self._number: dict[bytes, int] | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def distinct(self) -> int:
        """How many distinct codes there are."""
        return len(self.words)

    def top(self, query: Query, k: int) -> Hits:
        """The nearest k."""
        distances = query.distances(self.words)
        nearest = int(distances.argmin())
        start, stop = self.starts[nearest : nearest + 2].tolist()
        least = distances[nearest]
        if stop - start >= k and np.count_nonzero(distances == least) == 1:
            return Hits(slice(start, start + k), np.full(k, least))
        return self._merge(distances, self._buckets_for(distances, k), k)

    def top_many(self, queries: list[Query], k: int) -> list[Hits]:
        """The nearest k of each query; equal queries share one answer."""
        found: dict[bytes, Hits] = {}
        answers = []
        for query in queries:
            name = query.words.tobytes() if query.table is None else query.table.tobytes()
            if name not in found:
                found[name] = self.top(query, k)
            answers.append(found[name])
        return answers

    def ball(self, query: Query, limit: float) -> Hits:
        """All at a distance of at most `limit`, in any order."""
        if query.table is None and pays(query.bits, int(limit), self.distinct):
            flips, far = masks(query.bits, int(limit))
            codes = query.words[0] ^ flips
            at = np.minimum(np.searchsorted(self.words[:, 0], codes), self.distinct - 1)
            here = self.words[at, 0] == codes
            return self._expand(at[here], far[here])
        distances = query.distances(self.words)
        near = np.flatnonzero(distances <= limit)
        return self._expand(near, distances[near])

    def find(self, words: Words, places: NDArray[Any]) -> NDArray[np.int64]:
        """The positions of those of these items that are here."""
        found = []
        for code, place in zip(words, places, strict=True):
            bucket = self._bucket(code)
            if bucket >= 0:
                start, stop = self.starts[bucket : bucket + 2].tolist()
                at = start + int(np.searchsorted(self.places[start:stop], place))
                if at < stop and self.places[at] == place:
                    found.append(at)
        return np.array(found, dtype=np.int64)

    def item_words(self) -> Words:
        """The code of each item, by position."""
        return np.repeat(self.words, self.starts[1:].astype(np.int64) - self.starts[:-1], axis=0)

    def words_at(self, positions: NDArray[np.int64]) -> Words:
        """The codes of the items at these positions."""
        return self.words[np.searchsorted(self.starts, positions, side="right") - 1]

    def _bucket(self, code: NDArray[np.uint64]) -> int:
        if self.words.shape[1] == 1:
            at = int(np.searchsorted(self.words[:, 0], code[0]))
            return at if at < self.distinct and self.words[at, 0] == code[0] else -1
        if self._number is None:
            self._number = {row.tobytes(): number for number, row in enumerate(self.words)}
        return self._number.get(code.tobytes(), -1)

    def _buckets_for(self, distances: NDArray[Any], k: int) -> NDArray[np.int64]:
        """The buckets that hold the nearest k items, and all that tie with the last of those."""
        near = np.arange(len(distances))
        if len(distances) > k:  # k buckets hold k items or more
            near = np.flatnonzero(distances <= kth_smallest(distances, k))
        order = np.argsort(distances[near], kind="stable")
        held = np.cumsum(self.starts[near[order] + 1].astype(np.int64) - self.starts[near[order]])
        last = min(int(np.searchsorted(held, k)), len(order) - 1)
        chosen: NDArray[np.int64] = near[distances[near] <= distances[near[order[last]]]]
        return chosen

    def _merge(self, distances: NDArray[Any], buckets: NDArray[np.int64], k: int) -> Hits:
        """The nearest k items of these buckets."""
        starts = self.starts[buckets].astype(np.int64)
        lengths = np.minimum(self.starts[buckets + 1].astype(np.int64) - starts, k)
        positions, far = ranges(starts, lengths), np.repeat(distances[buckets], lengths)
        order = np.lexsort((self.places[positions], far))[:k]
        return Hits(positions[order], far[order])

    def _expand(self, buckets: NDArray[np.int64], far: NDArray[Any]) -> Hits:
        """All items of these buckets."""
        starts = self.starts[buckets].astype(np.int64)
        lengths = self.starts[buckets + 1].astype(np.int64) - starts
        if len(buckets) == 1:
            start, length = int(starts[0]), int(lengths[0])
            return Hits(slice(start, start + length), np.full(length, far[0]))
        return Hits(ranges(starts, lengths), np.repeat(far, lengths))
