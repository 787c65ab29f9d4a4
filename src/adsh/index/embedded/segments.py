"""The segments an open index searches, and one answer out of theirs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...hamming.bits import Codes, as_words, bytes_for
from ...hamming.hits import Hits
from ...hamming.query import Query
from ..filters import Where
from ..matches import Item, Matches
from ..rows import Rows, join
from .segment import Found, Segment


@dataclass(frozen=True)
class Parts:
    """What an index holds after some commit: the snapshot first, then ever smaller segments in memory."""

    bits: int
    segments: tuple[Segment, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    def without(self, places: NDArray[np.int64], codes: Codes) -> Parts:
        """These parts less some items."""
        if not len(places):
            return self
        words = as_words(codes)
        return Parts(self.bits, tuple(segment.without(words, places) for segment in self.segments))

    def with_rows(self, new: list[Rows], keep: int) -> Parts:
        """These parts and new items; what is in memory is merged when a later part has grown to half an earlier one."""
        kept, size = list(self.segments), sum(map(len, new))
        if not size:
            return self
        while len(kept) > keep and len(kept[-1]) <= 2 * size:
            size += len(kept[-1])
            new.append(kept.pop().rows())
        return Parts(self.bits, (*kept, Segment.of(join(new), self.bits)))

    def rows(self) -> Rows | None:
        """All items, in the order they were inserted."""
        parts = [segment.rows() for segment in self.segments if len(segment)]
        return join(parts) if parts else None

    def whole(self) -> Segment | None:
        """One segment that holds all items; None where there are none."""
        if len(self.segments) == 1 and self.segments[0].gone is None:
            return self.segments[0]
        rows = self.rows()
        return None if rows is None else Segment.of(rows, self.bits)

    def sample(self, count: int) -> list[Item]:
        """At most so many items, spread over all codes."""
        some: list[Item] = []
        step = max(1, -(-len(self) // count))
        for segment in self.segments:
            at = np.arange(0, len(segment.layout), step)
            at = at if segment.gone is None else at[~segment.gone[at]]
            texts = _metadata_texts(segment, at)
            for key, code, text in zip(segment.keys.at(at), segment.codes_at(at), texts, strict=True):
                some.append(Item(key, code.tobytes(), json.loads(text) if text else None))
        return some[:count]

    def top(
        self,
        queries: list[Query],
        k: int,
        offset: int = 0,
        where: Where | None = None,
        vectors: NDArray[np.int8] | None = None,
    ) -> list[Matches]:
        """The nearest k of each query after the first `offset`."""
        wanted = min(k + offset, len(self))
        if not wanted:
            return [_nothing() for _ in queries]
        found: list[list[Found]] = []
        for segment in self.segments:
            if vectors is not None:
                found.append([segment.reranked(*each, where) for each in _each(queries, wanted, vectors)])
            else:
                found.append([Found(hits) for hits in segment.top_many(queries, wanted, where)])
        return [self._matches(list(answers), offset, wanted) for answers in zip(*found, strict=True)]

    def within(self, query: Query, radius: int, offset: int, limit: int | None, where: Where | None) -> Matches:
        """All within the radius, or a page of them."""
        answers = [Found(segment.within(query, radius, where)) for segment in self.segments]
        stop = None if limit is None else offset + limit
        return self._matches(answers, offset, stop) if answers else _nothing()

    def _matches(self, answers: list[Found], start: int, stop: int | None) -> Matches:
        """One answer out of those of the segments, in order of distance, vector's distance and insertion."""
        if len(answers) == 1:
            positions, distances = answers[0].hits
            if start or (stop is not None and stop < len(distances)):
                positions, distances = answers[0].hits.indices()[start:stop], distances[start:stop]
            segment = self.segments[0]
            hits = Hits(positions, distances)
            return Matches(
                segment.keys.at(positions),
                distances,
                _metadata_of(segment, positions),
                lambda: segment.codes_at(hits.indices()),
            )
        segments = self.segments
        indices = [answer.hits.indices() for answer in answers]
        places = np.concatenate([part.layout.places[at] for part, at in zip(segments, indices, strict=True)])
        distances = np.concatenate([answer.hits.distances for answer in answers])
        by = [places.astype(np.int64), distances]
        if answers[0].near is not None:
            by.insert(1, np.concatenate([answer.near for answer in answers if answer.near is not None]))
        order = np.lexsort(by)[start:stop]
        owner = np.repeat(np.arange(len(segments)), [len(at) for at in indices])[order]
        position = np.concatenate(indices)[order]

        def gather(texts: Callable[[Segment, NDArray[np.int64]], list[str]]) -> list[str]:
            gathered = [""] * len(order)
            for number, segment in enumerate(segments):
                mine = np.flatnonzero(owner == number)
                for at, text in zip(mine.tolist(), texts(segment, position[mine]), strict=True):
                    gathered[at] = text
            return gathered

        def codes() -> Codes:
            gathered = np.empty((len(order), bytes_for(self.bits)), dtype=np.uint8)
            for number, segment in enumerate(segments):
                gathered[owner == number] = segment.codes_at(position[owner == number])
            return gathered

        keys = gather(lambda segment, at: segment.keys.at(at))
        bare = all(segment.metadata is None for segment in segments)
        return Matches(keys, distances[order], None if bare else lambda: gather(_metadata_texts), codes)


def _each(queries: list[Query], k: int, vectors: NDArray[np.int8]) -> list[tuple[Query, int, NDArray[np.int8]]]:
    return [(query, k, vector) for query, vector in zip(queries, vectors, strict=True)]


def _metadata_of(segment: Segment, positions: NDArray[np.int64] | slice) -> Callable[[], list[str]] | None:
    metadata = segment.metadata
    return None if metadata is None else lambda: metadata.at(positions)


def _metadata_texts(segment: Segment, positions: NDArray[np.int64]) -> list[str]:
    return [""] * len(positions) if segment.metadata is None else segment.metadata.at(positions)


def _nothing() -> Matches:
    return Matches([], Hits(slice(0, 0), np.zeros(0, dtype=np.uint8)).distances)
