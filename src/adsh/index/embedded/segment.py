"""A segment of an index: items laid out for searching, in memory or mapped from a snapshot.

An index is a few segments: the snapshot, and smaller ones of what was added since. A segment never changes; removing
items returns a new one that shares everything except the list of deleted items, so searches in other threads go on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...hamming.bits import Codes, as_octets, as_words
from ...hamming.buckets import Buckets
from ...hamming.distances import Words
from ...hamming.hits import Hits
from ...hamming.layout import Layout, choose_layout, compact_type
from ...hamming.query import Query
from ...hamming.scan import Scan
from ...hamming.small_vectors import FARTHEST, squared_distances
from ..deadline import check_deadline
from ..filters import Filter
from ..number_columns import NumberColumns, arrays_of, columns_from_arrays
from ..rows import Rows
from ..text_column import TextColumn
from .filter_results import FilterResults

Arrays = dict[str, NDArray[Any]]

# The filters whose results are cached, those used last: one byte per item and filter, so fewer of large segments.
_FILTERS, _LEAST_FILTERS, _FILTER_BYTES = 256, 4, 1 << 25
_COLUMNS_FROM = 1 << 14  # items: the metadata of fewer is read quickly, so their snapshots have no columns of numbers
_MORE = 4  # the factor by which a search is widened when the filter or deletions leave too few hits


class Found(NamedTuple):
    """Hits of one segment, and the distances of their vectors if these order ties."""

    hits: Hits
    vector_distances: NDArray[np.float32] | None = None


class Segment:
    """Items laid out for searching.

    Args:
        bits: the length of the codes.
        layout: the codes, in the order that is searched.
        keys: of the items, in the order of the layout.
        metadata: as JSON; None if no item has any.
        vectors: (n, dimensions), the small vectors; None if no item has any.
        deleted: (n,), whether each item is deleted; None if none is.
        filter_cache: results of the last filters, shared with the segment that this one was copied from.
        numbers: those of the metadata; by default they are read when a search needs them.
    """

    def __init__(  # its columns
        self,
        bits: int,
        layout: Layout,
        keys: TextColumn,
        metadata: TextColumn | None,
        vectors: NDArray[np.int8] | None,
        deleted: NDArray[np.bool_] | None = None,
        filter_cache: dict[str, FilterResults] | None = None,
        numbers: NumberColumns | None = None,
    ) -> None:
        self.bits = bits
        self.layout = layout
        self.keys = keys
        self.metadata = metadata
        self.vectors = vectors
        self.deleted = deleted  # (n,) or None if no item is
        self.numbers = NumberColumns(metadata) if numbers is None and metadata is not None else numbers
        self._filter_cache = {} if filter_cache is None else filter_cache  # one byte per item and filter
        self._len = len(layout) - (0 if deleted is None else int(np.count_nonzero(deleted)))

    @classmethod
    def of(cls, rows: Rows, bits: int) -> Segment:
        """Lay out these items for searching."""
        keys, metadata, vectors, words = rows.keys, rows.metadata, rows.vectors, as_words(rows.codes)
        insertion_order = rows.insertion_order.astype(compact_type(int(rows.insertion_order[-1])), copy=False)
        del rows  # and with it the codes, if the caller keeps no reference to them
        layout, order = choose_layout(words, insertion_order)
        del words, insertion_order
        if order is not None:
            keys = keys.take(order)
            metadata = None if metadata is None else metadata.take(order)
            vectors = None if vectors is None else vectors[order]
        return cls(bits, layout, keys, metadata, vectors)

    @classmethod
    def from_arrays(cls, arrays: Arrays, bits: int) -> Segment:
        """Return the segment that `arrays` described."""
        layout: Layout
        if "starts" in arrays:
            layout = Buckets(arrays["words"], arrays["starts"], arrays["places"])
        else:
            layout = Scan(arrays["words"], arrays["places"], arrays["by_code"])
        metadata = TextColumn(arrays["metadata"], arrays["metadata_offsets"]) if "metadata" in arrays else None
        numbers = None if metadata is None else NumberColumns(metadata, columns_from_arrays(arrays))
        keys = TextColumn(arrays["keys"], arrays["key_offsets"])
        return cls(bits, layout, keys, metadata, arrays.get("vectors"), numbers=numbers)

    def arrays(self) -> Arrays:
        """Return what a snapshot stores."""
        layout = self.layout
        arrays: Arrays = {"words": layout.words, "places": layout.insertion_order}
        arrays |= layout.own_arrays()
        arrays |= {"keys": self.keys.blob, "key_offsets": self.keys.offsets}
        if self.metadata is not None:
            arrays |= {"metadata": self.metadata.blob, "metadata_offsets": self.metadata.offsets}
        if self.vectors is not None:
            arrays["vectors"] = self.vectors
        if self.numbers is not None and len(self.layout) >= _COLUMNS_FROM:
            arrays |= arrays_of(self.numbers.columns())
        return arrays

    def __len__(self) -> int:
        return self._len

    def rows(self) -> Rows:
        """Return the items that are not deleted, in the order of insertion."""
        insertion_order = self.layout.insertion_order.astype(np.int64)
        codes = as_octets(self.layout.item_words(), self.bits)
        rows = Rows(insertion_order, codes, self.keys, self.metadata, self.vectors)
        if self.deleted is None and self.layout.keeps_insertion_order:
            return rows
        positions = np.arange(len(insertion_order)) if self.deleted is None else np.flatnonzero(~self.deleted)
        return rows.take(positions[np.argsort(insertion_order[positions], kind="stable")])

    def codes_at(self, positions: NDArray[np.int64]) -> Codes:
        """Return the packed codes of the items at these positions."""
        return as_octets(self.layout.words_at(positions), self.bits)

    def without(self, words: Words, insertion_order: NDArray[Any]) -> Segment:
        """Return this segment without those of these items that it holds."""
        found = self.layout.find(words, insertion_order)
        if not len(found):
            return self
        deleted = np.zeros(len(self.layout), dtype=bool) if self.deleted is None else self.deleted.copy()
        deleted[found] = True
        return Segment(
            self.bits,
            self.layout,
            self.keys,
            self.metadata,
            self.vectors,
            deleted,
            self._filter_cache,
            self.numbers,
        )

    def top(self, query: Query, k: int, where: Filter | None = None) -> Hits:
        """Return the k nearest items that are not deleted and that the filter accepts.

        Args:
            query: the query.
            k: how many.
            where: the filter; None accepts every item.

        Returns:
            The hits, nearest first.
        """
        depth = min(k, len(self.layout))
        while True:
            check_deadline()
            hits = self.layout.top(query, depth)
            if self.deleted is None and where is None:
                return hits
            accepted = self._accepted(hits, where)
            if len(accepted.distances) >= k or depth == len(self.layout):
                return accepted.first(k)
            rare = self._rare(query, k, where)
            if rare is not None:
                return rare
            depth = min(depth * _MORE, len(self.layout))

    def top_many(self, queries: list[Query], k: int, where: Filter | None = None) -> list[Hits]:
        """Return the k nearest of each query.

        Args:
            queries: the queries.
            k, where: as of `top`.

        Returns:
            The hits of each query.
        """
        if self.deleted is None and where is None:
            return self.layout.top_many(queries, min(k, len(self.layout)))
        return [self.top(query, k, where) for query in queries]

    def within(self, query: Query, limit: float, where: Filter | None = None) -> Hits:
        """Return all items within a distance that are not deleted and that the filter accepts, nearest first.

        Args:
            query: the query.
            limit: the largest distance.
            where: the filter; None accepts every item.

        Returns:
            The hits, nearest first.
        """
        hits = self._accepted(self.layout.ball(query, limit), where)
        if isinstance(hits.positions, slice):
            return hits
        order = np.lexsort((self.layout.insertion_order[hits.positions], hits.distances))
        return Hits(hits.positions[order], hits.distances[order])

    def reranked(self, query: Query, k: int, vector: NDArray[np.int8], where: Filter | None = None) -> Found:
        """Return the k nearest, with equal distances ordered by the distance of the small vectors.

        Args:
            query: the query.
            k: how many.
            vector: the query's small vector.
            where: the filter.

        Returns:
            The hits, and the distances of their vectors.
        """
        hits = self.top(query, k, where)
        if len(hits.distances) == k:  # what ties with the last of them may be nearer by its vector
            hits = self._accepted(self.layout.ball(query, hits.distances[-1]), where)
        if self.vectors is None:
            near = np.full(len(hits.distances), FARTHEST)
        else:
            near = squared_distances(vector, self.vectors, hits.positions)
        far, insertion_order = hits.distances, self.layout.insertion_order[hits.positions]
        chosen = np.arange(len(far))
        if len(far) > 2 * k and far.dtype.kind != "f":
            both = far.astype(np.int64) * int(2 * FARTHEST) + near.astype(np.int64)
            chosen = np.flatnonzero(both <= np.partition(both, k - 1)[k - 1])
        order = chosen[np.lexsort((insertion_order[chosen], near[chosen], far[chosen]))][:k]
        return Found(Hits(hits.indices()[order], far[order]), near[order])

    def _accepted(self, hits: Hits, where: Filter | None) -> Hits:
        """The hits that are not deleted and that the filter accepts."""
        if self.deleted is None and where is None:
            return hits
        keep = np.ones(len(hits.distances), dtype=bool) if self.deleted is None else ~self.deleted[hits.positions]
        if where is not None:
            keep &= self._passes(hits.indices(), where)
        return Hits(hits.indices()[keep], hits.distances[keep])

    def _passes(self, positions: NDArray[np.int64], where: Filter) -> NDArray[np.bool_]:
        """Whether the filter accepts each of these items."""
        results = self._results(where)
        return np.full(len(positions), where.accepts("")) if results is None else results.accepted(positions)

    def matching(self, where: Filter) -> list[str]:
        """Return the keys of all items that the filter accepts."""
        positions = np.arange(len(self.layout))
        if self.deleted is not None:
            positions = positions[~self.deleted]
        return self.keys.at(positions[self._passes(positions, where)])

    def _results(self, where: Filter) -> FilterResults | None:
        """The results of a filter; those of the last few are cached. None if no item has metadata."""
        if self.metadata is None or self.numbers is None:
            return None
        results = self._filter_cache.pop(where.name, None)
        if results is None:
            results = FilterResults(where, self.metadata, self.numbers)
            most = max(_LEAST_FILTERS, min(_FILTERS, _FILTER_BYTES // len(self.layout)))
            for name in list(self._filter_cache)[: 1 - most]:
                self._filter_cache.pop(name, None)
        self._filter_cache[where.name] = results
        return results

    def _rare(self, query: Query, k: int, where: Filter | None) -> Hits | None:
        """The k nearest items that a rare filter accepts, compared one by one; None if it is not known to be rare."""
        results = None if where is None else self._results(where)
        candidates = None if results is None else results.candidates()
        if results is None or candidates is None:
            return None
        positions = candidates[results.accepted(candidates)]
        if self.deleted is not None:
            positions = positions[~self.deleted[positions]]
        distances = query.distances(self.layout.words_at(positions))
        order = np.lexsort((self.layout.insertion_order[positions], distances))[:k]
        return Hits(positions[order], distances[order])
