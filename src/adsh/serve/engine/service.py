"""A model and an index, and everything that requests ask of them: the event loop never waits for either."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ...encoders.base import Coder
from ...errors import InputError
from ...index import Index, Item
from ..limits import Limits
from ..metrics import Metrics
from ..problems import Problem
from ..schemas import SearchRequest, Wanted, count_values
from .batcher import Batcher, one_by_one
from .images import Pictures, Seen
from .search import Search, Searching, from_hex

T = TypeVar("T")

_MOST_VALUES = 1000  # of a filter


class Service:
    """What the routes use. The index is called by a few threads, one for each kind of work; its handle allows that."""

    def __init__(
        self,
        coder: Coder,
        index: Index,
        limits: Limits,
        *,
        model: Path,
        runtime: str = "torch",
        images: Path | None = None,
    ) -> None:
        if coder.bits != index.bits:
            raise InputError(f"the model gives {coder.bits} bits and the index holds {index.bits}: they do not belong")
        self.coder, self.index, self.limits, self.metrics = coder, index, limits, Metrics()
        self.model, self.runtime, self.images = model, runtime, images
        self._place = index.storage_id()
        self.pictures = Pictures(coder, limits, self.metrics.batch("images"))
        self.searching = Searching(index, limits, self.metrics.batch("searches"))
        self._reads: Batcher[Callable[[], Any], Any] = Batcher(
            one_by_one, what="look-ups", most=16, room=limits.max_searches
        )
        self._slow_reads: Batcher[Callable[[], Any], Any] = Batcher(
            one_by_one, what="files", most=1, room=limits.max_searches
        )
        self._writes: Batcher[Callable[[], Any], Any] = Batcher(
            one_by_one, what="writes", most=1, room=limits.max_writes
        )
        self.metrics.gauge("index_items", "Items in the index.", lambda: len(index))
        self.metrics.gauge("pictures_under_way", "Pictures decoded, waiting or coded.", lambda: self.pictures.under_way)
        self.metrics.gauge("searches_waiting", "Searches waiting or at work.", lambda: len(self.searching.plain))
        self.metrics.gauge("writes_waiting", "Writes waiting or at work.", lambda: len(self._writes))

    async def read(self, job: Callable[[], T]) -> T:
        """What a call that only reads gives."""
        answer: T = await self._reads(job)
        return answer

    async def read_slowly(self, job: Callable[[], T]) -> T:
        """The same for one that may take long, and holds up only others of its kind."""
        answer: T = await self._slow_reads(job)
        return answer

    async def write(self, job: Callable[[], T]) -> T:
        """What a call that writes gives; one after the other, and finished even where nobody waits for it any more."""

        def checked() -> T:
            self.check_place()
            return job()

        answer: T = await asyncio.shield(self._writes(checked))
        return answer

    def check_place(self) -> None:
        """Raises where the index is not any more what was opened: what is written to it would be lost."""
        if self.index.storage_id() != self._place:
            raise Problem(503, "the index's folder was moved, replaced or removed: start the service again")

    async def item(self, key: str) -> Item:
        """The item of this key."""
        found = (await self.read(lambda: self.index.get([key])))[0]
        if found is None:
            raise Problem(404, f"there is no item with the key {key[:80]!r}: see what a search finds")
        return found

    async def by_code(self, asked: SearchRequest) -> bytes:
        """A search by code or key, answered as JSON."""
        k = self._allowed(asked)
        if asked.ranking == "asymmetric":
            raise Problem(422, "ranking asymmetric compares the network's outputs: search by image, or leave it out")
        if asked.code is not None:
            if asked.rerank:
                raise Problem(422, "rerank orders by what things look like: search by image or key, or leave it out")
            return await self.searching(Search(from_hex(asked.code, self.index.bits), k, asked.radius, asked.filter))
        key = asked.key or ""
        item = await self.item(key)
        vector = None
        if asked.rerank is not False and asked.radius is None:
            vector = await self.read(lambda: self.index.stored_vectors([key]))
        if asked.rerank and vector is None:
            raise Problem(422, f"the item {key[:80]!r} has no vector to order ties by: leave rerank out")
        return await self.searching(Search(item.code, k, asked.radius, asked.filter, vector=vector))

    async def by_image(self, data: bytes, asked: Wanted) -> bytes:
        """A search by picture, answered as JSON."""
        k = self._allowed(asked)
        seen = await self.pictures(data)
        outputs = seen.outputs if asked.ranking == "asymmetric" else None
        vector = None
        if outputs is None and asked.radius is None and asked.rerank is not False:
            vector = seen.vector if await self.read(lambda: self.index.has_vectors) else None
        if asked.rerank and vector is None:
            raise Problem(422, "the index holds no vectors to order ties by: leave rerank out")
        return await self.searching(Search(seen.code, k, asked.radius, asked.filter, outputs, vector))

    async def put(self, key: str, code: bytes, metadata: dict[str, Any] | None, seen: Seen | None = None) -> bool:
        """Stores an item durably, and says whether its key is new."""

        def add() -> bool:
            vectors = seen.vector[None] if seen is not None and seen.vector is not None else None
            if vectors is not None and not self.index.has_vectors:
                vectors = None  # the first ones decide how all are shortened: one is too few
            codes = np.frombuffer(code, dtype=np.uint8)[None]
            return self.index.add([key], codes, [metadata], vectors=vectors) == 1

        return await self.write(add)

    def _allowed(self, asked: Wanted) -> int:
        if asked.k > self.limits.max_k:
            raise Problem(422, f"k={asked.k}: at most {self.limits.max_k} matches are given; filter, or ask for fewer")
        if asked.filter is not None and (held := count_values(asked.filter)) > _MOST_VALUES:
            raise Problem(422, f"filter holds {held:,} values: give at most {_MOST_VALUES:,}")
        return asked.k

    async def close(self) -> None:
        """Finishes what was accepted, then lets go of the index and the model."""
        await self.pictures.close()
        await self.searching.close()
        await self._writes.close()
        await self._reads.close()
        await self._slow_reads.close()
        self.index.close()
        self.coder.close()
