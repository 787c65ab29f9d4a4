"""A part of an index in memory or mapped from a snapshot: items laid out for searching, and which are still there.

An index is a few segments: the snapshot, and smaller ones of what was added since. They never change; removing items
gives a segment that shares everything but the list of what is gone, so a search in another thread is not disturbed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...hamming.bits import Codes, as_octets, as_words
from ...hamming.buckets import Buckets
from ...hamming.hits import Hits
from ...hamming.layout import Layout, arrange, compact_type
from ...hamming.query import Query, Words
from ...hamming.scan import Scan
from ...hamming.small_vectors import FARTHEST, squared_distances
from ..filters import Where
from ..rows import Rows
from ..texts import Texts

Arrays = dict[str, NDArray[Any]]

_FILTERS = 4  # whose verdicts are remembered, one byte an item each
_MORE = 4  # how many times as many hits are asked for when too few of them were wanted ones


class Found(NamedTuple):
    """Hits of one segment, with the distances that order their ties where there are any."""

    hits: Hits
    near: NDArray[np.float32] | None = None


class Segment:
    """Items laid out for searching."""

    def __init__(
        self,
        bits: int,
        layout: Layout,
        keys: Texts,
        metadata: Texts | None,
        vectors: NDArray[np.int8] | None,
        gone: NDArray[np.bool_] | None = None,
        verdicts: dict[str, NDArray[np.int8]] | None = None,
    ) -> None:
        self.bits = bits
        self.layout = layout
        self.keys = keys
        self.metadata = metadata
        self.vectors = vectors
        self.gone = gone  # (n,) or None where all are there
        self._verdicts = {} if verdicts is None else verdicts  # of the last filters: 1 wanted, -1 not, 0 not looked at
        self._len = len(layout) - (0 if gone is None else int(np.count_nonzero(gone)))

    @classmethod
    def of(cls, rows: Rows, bits: int) -> Segment:
        """These items."""
        keys, metadata, vectors, words = rows.keys, rows.metadata, rows.vectors, as_words(rows.codes)
        places = rows.places.astype(compact_type(int(rows.places[-1])), copy=False)
        del rows  # and with it the codes, where the caller has let go of them
        layout, order = arrange(words, places)
        del words, places
        if order is not None:
            keys = keys.take(order)
            metadata = None if metadata is None else metadata.take(order)
            vectors = None if vectors is None else vectors[order]
        return cls(bits, layout, keys, metadata, vectors)

    @classmethod
    def from_arrays(cls, arrays: Arrays, bits: int) -> Segment:
        """What `arrays` gave."""
        layout: Layout
        if "starts" in arrays:
            layout = Buckets(arrays["words"], arrays["starts"], arrays["places"])
        else:
            layout = Scan(arrays["words"], arrays["places"], arrays["by_code"])
        metadata = Texts(arrays["metadata"], arrays["metadata_offsets"]) if "metadata" in arrays else None
        return cls(bits, layout, Texts(arrays["keys"], arrays["key_offsets"]), metadata, arrays.get("vectors"))

    def arrays(self) -> Arrays:
        """What a snapshot holds."""
        layout = self.layout
        arrays: Arrays = {"words": layout.words, "places": layout.places}
        arrays |= {"starts": layout.starts} if isinstance(layout, Buckets) else {"by_code": layout.by_code}
        arrays |= {"keys": self.keys.blob, "key_offsets": self.keys.offsets}
        if self.metadata is not None:
            arrays |= {"metadata": self.metadata.blob, "metadata_offsets": self.metadata.offsets}
        if self.vectors is not None:
            arrays["vectors"] = self.vectors
        return arrays

    def __len__(self) -> int:
        return self._len

    def rows(self) -> Rows:
        """The items that are still there, in the order they were inserted."""
        places = self.layout.places.astype(np.int64)
        codes = as_octets(self.layout.item_words(), self.bits)
        rows = Rows(places, codes, self.keys, self.metadata, self.vectors)
        if self.gone is None and isinstance(self.layout, Scan):
            return rows
        there = np.arange(len(places)) if self.gone is None else np.flatnonzero(~self.gone)
        return rows.take(there[np.argsort(places[there], kind="stable")])

    def codes_at(self, positions: NDArray[np.int64]) -> Codes:
        """The packed codes of the items at these positions."""
        return as_octets(self.layout.words_at(positions), self.bits)

    def without(self, words: Words, places: NDArray[Any]) -> Segment:
        """This segment less those of these items that it holds."""
        found = self.layout.find(words, places)
        if not len(found):
            return self
        gone = np.zeros(len(self.layout), dtype=bool) if self.gone is None else self.gone.copy()
        gone[found] = True
        return Segment(self.bits, self.layout, self.keys, self.metadata, self.vectors, gone, self._verdicts)

    def top(self, query: Query, k: int, where: Where | None = None) -> Hits:
        """The nearest k that are there and wanted."""
        wanted = min(k, len(self.layout))
        while True:
            hits = self.layout.top(query, wanted)
            if self.gone is None and where is None:
                return hits
            kept = self._kept(hits, where)
            if len(kept.distances) >= k or wanted == len(self.layout):
                return kept.first(k)
            wanted = min(wanted * _MORE, len(self.layout))

    def top_many(self, queries: list[Query], k: int, where: Where | None = None) -> list[Hits]:
        """The nearest k of each query."""
        if self.gone is None and where is None:
            return self.layout.top_many(queries, min(k, len(self.layout)))
        return [self.top(query, k, where) for query in queries]

    def within(self, query: Query, limit: float, where: Where | None = None) -> Hits:
        """All at a distance of at most `limit` that are there and wanted."""
        hits = self._kept(self.layout.ball(query, limit), where)
        if isinstance(hits.positions, slice):
            return hits
        order = np.lexsort((self.layout.places[hits.positions], hits.distances))
        return Hits(hits.positions[order], hits.distances[order])

    def reranked(self, query: Query, k: int, vector: NDArray[np.int8], where: Where | None = None) -> Found:
        """The nearest k, those at one distance in the order of their small vectors."""
        hits = self.top(query, k, where)
        if len(hits.distances) == k:  # what ties with the last of them may be nearer by its vector
            hits = self._kept(self.layout.ball(query, hits.distances[-1]), where)
        if self.vectors is None:
            near = np.full(len(hits.distances), FARTHEST)
        else:
            near = squared_distances(vector, self.vectors, hits.positions)
        far, places = hits.distances, self.layout.places[hits.positions]
        chosen = np.arange(len(far))
        if len(far) > 2 * k and far.dtype.kind != "f":
            both = far.astype(np.int64) * int(2 * FARTHEST) + near.astype(np.int64)
            chosen = np.flatnonzero(both <= np.partition(both, k - 1)[k - 1])
        order = chosen[np.lexsort((places[chosen], near[chosen], far[chosen]))][:k]
        return Found(Hits(hits.indices()[order], far[order]), near[order])

    def _kept(self, hits: Hits, where: Where | None) -> Hits:
        if self.gone is None and where is None:
            return hits
        keep = np.ones(len(hits.distances), dtype=bool) if self.gone is None else ~self.gone[hits.positions]
        if where is not None:
            keep &= self._wanted(hits.indices(), where)
        return Hits(hits.indices()[keep], hits.distances[keep])

    def _wanted(self, positions: NDArray[np.int64], where: Where) -> NDArray[np.bool_]:
        """Which of these items the filter accepts; each item is looked at once for the last few filters."""
        if self.metadata is None:
            return np.full(len(positions), where.accepts(""))
        verdicts = self._verdicts.get(where.name)
        if verdicts is None:
            while len(self._verdicts) >= _FILTERS:
                self._verdicts.pop(next(iter(self._verdicts)), None)
            verdicts = self._verdicts[where.name] = np.zeros(len(self.layout), dtype=np.int8)
        new = positions[verdicts[positions] == 0]
        verdicts[new] = [1 if where.accepts(text) else -1 for text in self.metadata.at(new)]
        return verdicts[positions] > 0
