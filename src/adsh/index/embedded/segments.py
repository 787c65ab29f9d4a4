"""The segments that an open index searches, and the merging of their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...hamming.bits import Codes, as_words, bytes_for
from ...hamming.hits import Hits
from ...hamming.query import Query
from ..filters import Filter
from ..matches import Item, Matches
from ..rows import SAMPLE_BYTES, Rows, join
from .segment import Found, Segment


@dataclass(frozen=True)
class Segments:
    """What an index holds after a commit: the snapshot first, then smaller and smaller segments in memory."""

    bits: int
    segments: tuple[Segment, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    def without(self, insertion_order: NDArray[np.int64], codes: Codes) -> Segments:
        """Return these segments without some items."""
        if not len(insertion_order):
            return self
        words = as_words(codes)
        return Segments(self.bits, tuple(segment.without(words, insertion_order) for segment in self.segments))

    def with_rows(self, new: list[Rows], keep: int) -> Segments:
        """Return these segments and new items.

        A segment in memory is merged with the new items once these are half its size.

        Args:
            new: the new items; the list is emptied.
            keep: how many of the first segments are never merged.
        """
        segments, size = list(self.segments), sum(map(len, new))
        if not size:
            return self
        while len(segments) > keep and len(segments[-1]) <= 2 * size:
            size += len(segments[-1])
            new.append(segments.pop().rows())
        return Segments(self.bits, (*segments, Segment.of(join(new), self.bits)))

    def rows(self) -> Rows | None:
        """Return all items in the order of insertion; None if there are none."""
        pieces = [segment.rows() for segment in self.segments if len(segment)]
        return join(pieces) if pieces else None

    def merged(self) -> Segment | None:
        """Return one segment that holds all items; None if there are none."""
        if len(self.segments) == 1 and self.segments[0].deleted is None:
            return self.segments[0]
        rows = self.rows()
        return None if rows is None else Segment.of(rows, self.bits)

    def sample(self, count: int) -> list[Item]:
        """Return at most `count` items, spread over all codes; fewer where their metadata is long."""
        items: list[Item] = []
        step = max(1, -(-len(self) // count))
        while sum(_metadata_bytes(segment, at) for segment, at in self._every(step)) > SAMPLE_BYTES:
            step *= 2
        for segment, at in self._every(step):
            texts = _metadata_texts(segment, at)
            for key, code, text in zip(segment.keys.at(at), segment.codes_at(at), texts, strict=True):
                items.append(Item(key, code.tobytes(), json.loads(text) if text else None))
        return items[:count]

    def _every(self, step: int) -> Iterator[tuple[Segment, NDArray[np.int64]]]:
        """Yield each segment with the positions of its items that are a multiple of `step`."""
        for segment in self.segments:
            at = np.arange(0, len(segment.layout), step)
            yield segment, at if segment.deleted is None else at[~segment.deleted[at]]

    def top(
        self,
        queries: list[Query],
        k: int,
        offset: int = 0,
        where: Filter | None = None,
        vectors: NDArray[np.int8] | None = None,
    ) -> list[Matches]:
        """Return the k nearest of each query after the first `offset`.

        Args:
            queries: the queries.
            k: how many items to return.
            offset: how many to skip.
            where: the filter.
            vectors: the queries' small vectors (q, dimensions), to order ties by; None for the order of insertion.

        Returns:
            The matches of each query.
        """
        depth = min(k + offset, len(self))
        if not depth:
            return [_no_matches() for _ in queries]
        found: list[list[Found]] = []
        for segment in self.segments:
            if vectors is not None:
                each = zip(queries, vectors, strict=True)
                found.append([segment.reranked(query, depth, vector, where) for query, vector in each])
            else:
                found.append([Found(hits) for hits in segment.top_many(queries, depth, where)])
        return [self._matches(list(of_query), offset, depth) for of_query in zip(*found, strict=True)]

    def within(self, query: Query, radius: int, offset: int, limit: int | None, where: Filter | None) -> Matches:
        """Return all within the radius, or a page of them.

        Args:
            query: the query.
            radius: the largest distance.
            offset: how many of the nearest to skip.
            limit: how many to return at most; None for all.
            where: the filter.

        Returns:
            The matches, nearest first.
        """
        found = [Found(segment.within(query, radius, where)) for segment in self.segments]
        stop = None if limit is None else offset + limit
        return self._matches(found, offset, stop) if found else _no_matches()

    def _matches(self, found: list[Found], start: int, stop: int | None) -> Matches:
        """Merge what the segments found, in order of distance, vector distance and insertion.

        Args:
            found: the hits of each segment.
            start, stop: which of the merged hits to return.

        Returns:
            The matches.
        """
        if len(found) == 1:
            return _segment_matches(self.segments[0], found[0].hits, start, stop)
        segments = self.segments
        indices = [one.hits.indices() for one in found]
        insertion_order = np.concatenate(
            [segment.layout.insertion_order[at] for segment, at in zip(segments, indices, strict=True)]
        )
        distances = np.concatenate([one.hits.distances for one in found])
        by = [insertion_order.astype(np.int64), distances]  # the last is compared first
        if found[0].vector_distances is not None:
            by.insert(1, np.concatenate([one.vector_distances for one in found if one.vector_distances is not None]))
        order = np.lexsort(by)[start:stop]
        owner = np.repeat(np.arange(len(segments)), [len(at) for at in indices])[order]
        position = np.concatenate(indices)[order]

        def gather(texts: Callable[[Segment, NDArray[np.int64]], list[str]]) -> list[str]:
            gathered = [""] * len(order)
            for number, segment in enumerate(segments):
                own = np.flatnonzero(owner == number)
                for at, text in zip(own.tolist(), texts(segment, position[own]), strict=True):
                    gathered[at] = text
            return gathered

        def codes() -> Codes:
            gathered = np.empty((len(order), bytes_for(self.bits)), dtype=np.uint8)
            for number, segment in enumerate(segments):
                gathered[owner == number] = segment.codes_at(position[owner == number])
            return gathered

        keys = gather(lambda segment, at: segment.keys.at(at))
        has_metadata = any(segment.metadata is not None for segment in segments)
        return Matches(keys, distances[order], (lambda: gather(_metadata_texts)) if has_metadata else None, codes)


def _segment_matches(segment: Segment, hits: Hits, start: int, stop: int | None) -> Matches:
    """Return the matches of an index with a single segment, whose hits are in order already.

    Args:
        segment: the segment.
        hits: in order.
        start, stop: which of them to return.

    Returns:
        The matches.
    """
    positions, distances = hits
    if start or (stop is not None and stop < len(distances)):
        positions, distances = hits.indices()[start:stop], distances[start:stop]
    page, metadata = Hits(positions, distances), segment.metadata
    return Matches(
        segment.keys.at(positions),
        distances,
        None if metadata is None else lambda: metadata.at(positions),
        lambda: segment.codes_at(page.indices()),
    )


def _metadata_texts(segment: Segment, positions: NDArray[np.int64]) -> list[str]:
    return [""] * len(positions) if segment.metadata is None else segment.metadata.at(positions)


def _metadata_bytes(segment: Segment, positions: NDArray[np.int64]) -> int:
    if segment.metadata is None:
        return 0
    offsets = segment.metadata.offsets
    return int((offsets[positions + 1] - offsets[positions]).sum(dtype=np.int64))


def _no_matches() -> Matches:
    return Matches([], Hits(slice(0, 0), np.zeros(0, dtype=np.uint8)).distances)
