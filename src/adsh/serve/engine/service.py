"""A model and an index, and what requests do with them. The event loop never waits for either."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ...encoders.base import Encoder
from ...errors import InputError
from ...hamming.bits import Codes
from ...hamming.scan import faiss_module
from ...index import Index, Item
from ...index.collection import Page
from ...index.deadline import time_limit
from ...index.embedded.database import DATABASE
from ...search.searcher import EncodedQueries, Searcher, SearchOptions, SearchPlan
from .answers import check_filter
from .batcher import Batcher, call_each
from .images import EncodedImage, ImageEncoder
from .limits import Limits
from .metrics import Metrics
from .problems import Problem
from .search_queue import SearchQueue, parse_hex
from .workers import Result, WorkerPool

T = TypeVar("T")

_MOVING = (0.01, 0.02, 0.05, 0.1, 0.2, 0.0)  # seconds to wait for a folder that is being replaced
_MAX_VALUES = 1000  # of a filter
_PARSER_MEMORY = 2 << 30  # bytes that parsing a batch may take


class Service:
    """The methods that routes call. A few threads use the index, one for each kind of work; its handle allows that.

    Args:
        encoder: Encodes images.
        index: Holds codes of the same model.
        limits: What requests may take.
        model: The model's folder, for facts about it.
        runtime: What runs the encoder, for facts about it.
        images: The folder below which files may be shown; None to show none.
    """

    def __init__(
        self,
        encoder: Encoder,
        index: Index,
        limits: Limits,
        *,
        model: Path,
        runtime: str = "torch",
        images: Path | None = None,
    ) -> None:
        if encoder.bits != index.bits:
            raise InputError(
                f"the model has codes of {encoder.bits} bits and the index of {index.bits}: give the model that the "
                "index was built with"
            )
        self.encoder, self.index, self.limits, self.metrics = encoder, index, limits, Metrics()
        self.model, self.runtime, self.images = model, runtime, images
        self._storage_id, self._log_id = index.storage_id(), None
        self._log_id = self._read_log_id()
        self._searcher = Searcher(index)
        self.encode_image = ImageEncoder(encoder, limits, self.metrics.batch("images"))
        self._searches = SearchQueue(self._searcher, limits, self.metrics.batch("searches"))
        self._parsers = WorkerPool(1, _PARSER_MEMORY, limits.max_decode_seconds, "parse")
        self._reads: Batcher[Callable[[], Any], Any] = Batcher(
            call_each, what="look-ups", max_batch=16, capacity=limits.max_searches
        )
        self._slow_reads: Batcher[Callable[[], Any], Any] = Batcher(
            call_each, what="files", max_batch=1, capacity=limits.max_searches
        )
        self._writes: Batcher[Callable[[], Any], Any] = Batcher(
            call_each, what="writes", max_batch=1, capacity=limits.max_writes
        )
        self._add_gauges()

    def start(self) -> None:
        """Start what the first requests would otherwise wait for."""
        if self.encoder.size or self.encoder.vector_size:
            self.encode_image.start()
        self._searches.start()
        faiss_module()  # later, importing it would keep the event loop waiting

    def replace_encoder(self, encoder: Encoder) -> None:
        """Encode images with another model from the next batch on; the former one ends with its last batch."""
        self.encoder = encoder
        self.encode_image.replace(encoder)

    def _add_gauges(self) -> None:
        add, images = self.metrics.gauge, self.encode_image
        add("index_items", "Items in the index.", lambda: len(self.index))
        add("images_in_progress", "Images being decoded, waiting or encoded.", lambda: images.in_progress)
        add("pictures_under_way", "The former name of adsh_images_in_progress.", lambda: images.in_progress)
        add("searches_waiting", "Searches waiting or running.", lambda: len(self._searches.plain))
        add("writes_waiting", "Writes waiting or running.", lambda: len(self._writes))

    async def parse(self, job: str, options: dict[str, Any], body: bytes) -> Result:
        """Parse a large body in a process of its own, which is ended if it takes too long.

        Args:
            job: What it is.
            options: What the job takes besides.
            body: The body.
        """
        return await self._parsers(job, options, body)

    async def read(self, job: Callable[[], T]) -> T:
        """Return the result of a call that only reads."""
        answer: T = await self._reads(job)
        return answer

    async def read_slowly(self, job: Callable[[], T]) -> T:
        """Return the result of a call that reads and may take long; it delays only others of its kind."""
        answer: T = await self._slow_reads(job)
        return answer

    async def write(self, job: Callable[[], T]) -> T:
        """Return the result of a call that writes; writes run one by one, and finish even if the client has left."""

        def checked() -> T:
            self.check_index_file()
            return job()

        answer: T = await asyncio.shield(self._writes(checked))
        return answer

    def check_index_file(self) -> None:
        """Raise if the index's folder is no longer the one that was opened: what is written to it would be lost."""
        for pause in _MOVING:  # an index inside a model's folder is elsewhere for a moment while that is replaced
            log_id = self._read_log_id()
            self._log_id = self._log_id or log_id
            if self.index.storage_id() == self._storage_id and log_id == self._log_id:
                return
            time.sleep(pause)
        raise Problem(503, "the index's folder was moved, replaced or removed: start the service again")

    def _read_log_id(self) -> int | None:
        """Return the inode of the log that this service writes; None where there is none.

        The log of a read-only index is its writer's, who creates and deletes it.
        """
        if self.index.folder is None or self.index.read_only:
            return None
        try:
            return (self.index.folder / f"{DATABASE}-wal").stat().st_ino
        except OSError:
            return None

    async def item(self, key: str) -> Item:
        """Return the item of a key."""
        found = (await self.read(lambda: self.index.get([key])))[0]
        if found is None:
            raise Problem(404, f"there is no item with the key {key[:80]!r}: search for the keys there are")
        return found

    async def search_by_code(self, code: str, options: SearchOptions) -> bytes:
        """Search by a code in hexadecimal digits, and return the answer as JSON."""
        self._check_limits(options)
        queries = EncodedQueries(_as_codes(parse_hex(code, self.index.bits)))
        return await self._searches(self._searcher.plan(queries, options))  # without vectors, no index is called

    async def search_by_key(self, key: str, options: SearchOptions) -> bytes:
        """Search by the code of a stored item, and return the answer as JSON."""
        self._check_limits(options)
        codes = _as_codes((await self.item(key)).code)

        def plan() -> SearchPlan:
            vectors = self.index.stored_vectors([key]) if options.orders_ties else None
            return self._searcher.plan(EncodedQueries(codes, vectors=vectors, keys=[key]), options)

        return await self._searches(await self.read(plan))

    async def search_by_image(self, data: bytes, options: SearchOptions) -> bytes:
        """Search by an image file, and return the answer as JSON."""
        self._check_limits(options)
        image = await self.encode_image(data)
        vectors = None if image.vector is None or not options.orders_ties else image.vector[None]
        familiarity = None if image.familiarity is None else [image.familiarity]
        queries = EncodedQueries(_as_codes(image.code), image.outputs[None], vectors, familiarity=familiarity)
        return await self._searches(await self.read(lambda: self._searcher.plan(queries, options)))

    async def search_many(self, queries: Sequence[tuple[str | None, str | None]], options: SearchOptions) -> bytes:
        """Search by codes in hexadecimal digits, or by keys, and return the answers as JSON; all of them or none.

        Args:
            queries: The code or the key of each.
            options: Of every search.
        """
        self._check_limits(options)
        searches = [
            self.search_by_code(code, replace(options, include_self=True))
            if code is not None
            else self.search_by_key(key or "", options)
            for code, key in queries
        ]
        answers = await asyncio.gather(*searches, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return b'{"answers":[' + b",".join(answer for answer in answers if isinstance(answer, bytes)) + b"]}"

    async def page(self, count: int, cursor: str | None, where: dict[str, Any] | None) -> Page:
        """Return some items that meet a filter, and where the next ones start."""
        self._check_where(where)
        return await self.read_slowly(lambda: self._limited(lambda: self.index.page(count, cursor, where)))

    async def count(self, where: dict[str, Any]) -> int:
        """Return how many items meet a filter."""
        self._check_where(where)
        return await self.read_slowly(lambda: self._limited(lambda: self.index.count(where)))

    async def remove_where(self, where: dict[str, Any]) -> int:
        """Remove the items that meet a filter, durably, and return how many there were."""
        self._check_where(where)
        return await self.write(lambda: self._limited(lambda: self.index.remove_where(where)))

    async def patch(self, key: str, fields: dict[str, Any]) -> Item:
        """Set fields of an item's metadata, durably, and return the item."""
        if not await self.write(lambda: self.index.change_metadata([key], fields)):
            raise Problem(404, f"there is no item with the key {key[:80]!r}: nothing was changed")
        return await self.item(key)

    def _limited(self, job: Callable[[], T]) -> T:
        with time_limit(self.limits.max_seconds / 2):
            return job()

    async def store(
        self, key: str, code: bytes, metadata: dict[str, Any] | None, image: EncodedImage | None = None
    ) -> bool:
        """Store an item durably.

        Args:
            key: The item's key.
            code: Its packed code.
            metadata: What to keep with it.
            image: The encoded image that the code is of, for its vector.

        Returns:
            Whether the key is new.
        """

        def add() -> bool:
            vectors = image.vector[None] if image is not None and image.vector is not None else None
            if vectors is not None and not self.index.has_vectors:
                vectors = None  # the first ones decide how all are compressed: one is too few
            by_network = image is not None
            return self.index.add([key], _as_codes(code), [metadata], vectors=vectors, by_network=by_network) == 1

        return await self.write(add)

    def _check_limits(self, options: SearchOptions) -> None:
        if options.k > self.limits.max_k:
            raise Problem(
                422, f"k={options.k}: at most {self.limits.max_k} matches are returned; filter, or ask for fewer"
            )
        self._check_where(options.where)

    def _check_where(self, where: dict[str, Any] | None) -> None:
        if where is None:
            return
        if (count := count_values(where)) > _MAX_VALUES:
            raise Problem(422, f"filter holds {count:,} values: give at most {_MAX_VALUES:,}")
        check_filter(where)

    async def close(self) -> None:
        """Finish what was accepted, then close the index and the model."""
        await self.encode_image.close()
        await asyncio.get_running_loop().run_in_executor(None, self._parsers.close)
        await self._searches.close()
        await self._writes.close()
        await self._reads.close()
        await self._slow_reads.close()
        self.index.close()
        self.encoder.close()


def count_values(value: Any) -> int:
    """Return how many values JSON holds, at any depth."""
    count, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        count += 1
    return count


def _as_codes(code: bytes) -> Codes:
    return np.frombuffer(code, dtype=np.uint8)[None]
