"""An index in Milvus: `milvus+http://user:password@host:19530/database?collection=photos&index=BIN_FLAT`.

Milvus has no transactions: only a request (16 MB) is stored completely or not at all. An add that needs several can
fail between two; the error then says how many items are stored, and the add can be repeated. Milvus keeps no vectors to
re-rank by, and ranks by Hamming distance only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import InputError, ServerError
from ...hamming.bits import as_octets, check_bits
from ...hamming.query import Query
from ...models.fingerprint import ModelId
from ..base import Index
from ..collection import Change, Page, changed_items, new_marks
from ..filters import Filter
from ..header import HEADER, Header, no_index
from ..matches import Item, Matches
from ..rows import Rows, with_changes
from ..text_column import TextColumn
from ..validation import Batch
from .search import (
    EVERYTHING,
    MOST,
    Entity,
    Search,
    as_matches,
    codes_of,
    fields_of,
    generation_of,
    mark_of,
    read_all,
    read_matching,
    read_outdated,
    windows,
)
from .server import KEYS, LONGEST_TEXT, Milvus, identity

_REQUEST = 16 << 20  # bytes


class MilvusIndex(Index):
    """An index in two collections of a Milvus server.

    Args:
        address: milvus+http://host:19530?collection=NAME, or milvus+https.
        bits: the length of the codes; None to open an existing index only.
        model: the model that computes the codes; None if it is not known.
        timeout: how many seconds to wait for the server.
    """

    keeps_vectors = False
    ranks_asymmetric = False

    def __init__(self, address: str, bits: int | None, model: ModelId | None, timeout: float) -> None:
        self._milvus = milvus = Milvus(address, timeout)
        self.location = milvus.name
        self._last = 0  # the insertion order of the last item added by this handle
        try:
            with milvus.translated_errors():
                self._header = self._create_or_open(bits, model)
                milvus.check(self.bits, milvus.items, milvus.facts)
                self._options = milvus.search_options()
        except BaseException:
            milvus.close()
            raise

    def _create_or_open(self, bits: int | None, model: ModelId | None) -> Header:
        """Return the header of the index, whose collections are created now if they are missing."""
        milvus = self._milvus
        if not milvus.client.has_collection(milvus.facts):
            if milvus.client.has_collection(milvus.items):  # another program's, or what a killed process left
                milvus.check(bits and check_bits(bits), milvus.items)
            if bits is None:
                raise no_index(self.location)
            milvus.create(milvus.items, check_bits(bits))  # first: without facts, nothing takes it for an index
            milvus.create(milvus.facts, bits)
        stored = milvus.fact(HEADER)
        if stored is None:
            if bits is None:
                raise no_index(self.location)
            stored = Header.new(check_bits(bits), model).to_json().decode()
            milvus.set_fact(HEADER, stored)
        header = Header.from_json(stored.encode(), self.location)
        header.check_bits(bits, self.location)
        milvus.create(milvus.items, header.bits)
        if model is not None and model.fingerprint != header.model:
            header = header.with_model(model, len(self), self.location)
            milvus.set_fact(HEADER, header.to_json().decode())
        return header

    def _add(self, batch: Batch, vectors: Any) -> int:
        """Store items, in one request if they fit.

        If they do not fit and the server fails, the error says how many are stored; the same call can be repeated.
        """
        texts = batch.metadata or [b""] * len(batch.keys)
        generations = dict(batch.by_network)
        longest = max(map(len, texts))
        if longest > LONGEST_TEXT:
            raise InputError(f"metadata takes {longest} bytes, and Milvus stores at most {LONGEST_TEXT}: store less")
        names = [key.decode() for key in batch.keys]
        known = {entity["key"]: entity["place"] for entity in self._entities(batch.keys, ["key", "place"])}
        first = max(time.time_ns(), self._last + 1)  # the clock orders the items that several processes add
        self._last = first + len(names)
        entities = [
            {
                "id": identity(name),
                "key": name,
                "place": known.get(name, first + number),
                "code": code.tobytes(),
                "metadata": text.decode(),
                "fields": fields_of(text) | mark_of(generations.get(number)),
            }
            for number, (name, code, text) in enumerate(zip(names, batch.codes, texts, strict=True))
        ]
        stored = 0
        for request in _requests(entities):
            try:
                with self._milvus.translated_errors():
                    self._milvus.client.upsert(self._milvus.items, request, timeout=self._milvus.timeout)
            except ServerError as problem:
                if len(request) == len(entities):
                    raise
                raise ServerError(
                    f"{problem}; the first {stored:,} of {len(entities):,} items are stored, of the next "
                    f"{len(request):,} all or none, and no other: repeat the same add"
                ) from None
            stored += len(request)
        return len(names) - len(known)

    def _accept(self, model: ModelId) -> Header:
        stored = Header.from_json((self._fact(HEADER) or b"{}"), self.location)
        header = stored.advanced_to(model, len(self), self.location)
        if header != stored:
            self._set_fact(HEADER, header.to_json())
        return header

    def _outdated(self, generation: int, after: str, count: int) -> list[str]:
        with self._milvus.translated_errors():
            found = [entity["key"] for window in windows(read_outdated(self._milvus, generation)) for entity in window]
        return sorted(key for key in found if key > after)[:count]

    def _networks(self, keys: list[bytes]) -> dict[str, int]:
        marks = {entity["key"]: generation_of(entity) for entity in self._entities(keys, ["key", "fields"])}
        return {key: generation for key, generation in marks.items() if generation is not None}

    def _page(self, cursor: str, count: int, where: Filter | None) -> Page:
        """Return items behind the place of insertion that a cursor names."""
        start = int(cursor) if cursor.isdecimal() else 0
        found: list[Item] = []
        with self._milvus.translated_errors():
            reading = windows(read_matching(self._milvus, where), (start, EVERYTHING[1]), min(count + 2, MOST))
            for entity in (entity for window in reading for entity in window):
                if where is None or where.accepts(entity["metadata"]):
                    if len(found) == count:
                        return Page(found, str(entity["place"]))
                    found += _as_rows([entity]).items()
        return Page(found, None)

    def _matching_keys(self, where: Filter) -> list[str]:
        with self._milvus.translated_errors():
            found = windows(read_matching(self._milvus, where))
            return [entity["key"] for window in found for entity in window if where.accepts(entity["metadata"])]

    def _change(self, keys: list[bytes], change: Change) -> int:
        """Change items by one request where they fit: Milvus has no transactions."""
        entities = self._entities(keys, ["key", "place", "code", "metadata", "fields"])
        if not entities:
            return 0
        old = _as_rows(entities)
        changes = changed_items(list(old.items()), change)
        if not changes:
            return 0
        at = np.array([number for number, _ in changes], dtype=np.int64)
        rows = with_changes(old.take(at), [one for _, one in changes], self.bits)
        metadata = None if rows.metadata is None else [text.encode() for text in rows.metadata.run(0, len(rows))]
        marks = new_marks(changes, [generation_of(entities[number]) for number in at.tolist()])
        names = [key.encode() for key in rows.keys.run(0, len(rows))]
        self._add(Batch(names, rows.codes, metadata, marks), None)
        return len(names)

    def _remove(self, keys: list[bytes]) -> int:
        ids = [entity["id"] for entity in self._entities(keys, ["id"])]
        with self._milvus.translated_errors():
            for start in range(0, len(ids), KEYS):
                self._milvus.client.delete(
                    self._milvus.items, ids=ids[start : start + KEYS], timeout=self._milvus.timeout
                )
        return len(ids)

    def _search(self, queries: list[Query], k: int, offset: int, where: Filter | None, vectors: Any) -> list[Matches]:
        searches = self._searches(queries, where)
        with self._milvus.translated_errors():
            return [as_matches(search.top(k + offset)[offset:], self._milvus) for search in searches]

    def _within(
        self, queries: list[Query], radius: int, offset: int, limit: int | None, where: Filter | None
    ) -> list[Matches]:
        stop = None if limit is None else offset + limit
        searches = self._searches(queries, where)
        with self._milvus.translated_errors():
            return [as_matches(search.within(radius)[offset:stop], self._milvus) for search in searches]

    def _searches(self, queries: list[Query], where: Filter | None) -> list[Search]:
        codes = [as_octets(query.words[None], self.bits).tobytes() for query in queries]
        return [Search(self._milvus, code, self.bits, where, self._options) for code in codes]

    def _find(self, keys: list[bytes]) -> list[Rows]:
        entities = self._entities(keys, ["key", "place", "code", "metadata"])
        return [_as_rows(entities)] if entities else []

    def _fact(self, name: str) -> bytes | None:
        stored = self._milvus.fact(name)
        return None if stored is None else stored.encode()

    def _set_fact(self, name: str, value: bytes, *, overwrite: bool = True) -> None:
        if overwrite or self._milvus.fact(name) is None:
            self._milvus.set_fact(name, value.decode())

    def batches(self, size: int = 1 << 14) -> Iterator[Rows]:
        """Yield all items in the order of insertion, at most `size` at a time."""
        with self._milvus.translated_errors():
            for window in windows(read_all(self._milvus), most=min(size + 1, MOST)):
                if window:
                    yield _as_rows(window)

    def compact(self) -> None:
        """Do nothing: a Milvus server compacts by itself."""

    def verify(self) -> list[str]:
        """Read every item and return what is wrong; an empty list if all that were counted can be read."""
        problems: list[str] = []
        count, padding = 0, 8 * -(-self.bits // 8) - self.bits
        for rows in self.batches():
            count += len(rows)
            if padding and (rows.codes[:, -1] & ((1 << padding) - 1)).any():
                problems.append("a code has a 1 among the bits that only pad its last byte")
        if count != len(self):
            problems.append(f"{count} items can be read and {len(self)} are counted")
        return problems

    def info(self) -> dict[str, Any]:
        """Return what the index holds and how it is searched."""
        with self._milvus.translated_errors():
            description = self._milvus.client.describe_index(self._milvus.items, "code") or {}
        return {
            "path": self.location,
            "items": len(self),
            "bits": self.bits,
            "model": self.model,
            "format_version": self._header.format_version,
            "search": f"scan (Milvus {description.get('index_type')})",
            "distinct_codes": None,  # Milvus does not count them
            "vector_dimensions": 0,
            "bytes": None,
        }

    def __len__(self) -> int:
        with self._milvus.translated_errors():
            count = self._milvus.client.query(
                self._milvus.items,
                filter="",
                output_fields=["count(*)"],
                consistency_level="Strong",
                timeout=self._milvus.timeout,
            )
        return int(count[0]["count(*)"])

    def close(self) -> None:
        """Close this handle. What was added stays."""
        self._milvus.close()

    def _entities(self, keys: list[bytes], fields: list[str]) -> list[Entity]:
        return self._milvus.entities([identity(key.decode()) for key in keys], fields)


def _requests(entities: list[Entity]) -> Iterator[list[Entity]]:
    """Split the entities into as few requests as their size allows."""
    request: list[Entity] = []
    size = 0
    for entity in entities:
        entity_size = 200 + len(entity["code"]) + 4 * len(entity["key"]) + 2 * len(entity["metadata"])
        if request and size + entity_size > _REQUEST:
            yield request
            request, size = [], 0
        request.append(entity)
        size += entity_size
    yield request


def _as_rows(entities: list[Entity]) -> Rows:
    texts = [entity["metadata"].encode() for entity in entities]
    return Rows(
        np.array([entity["place"] for entity in entities], dtype=np.int64),
        codes_of(entities),
        TextColumn.of([entity["key"].encode() for entity in entities]),
        TextColumn.of(texts) if any(texts) else None,
        None,
    )
