"""An index in Milvus: `milvus+http://user:password@host:19530/database?collection=photos&index=BIN_FLAT`.

Milvus has no transactions: what is stored whole or not at all is a request (16 MB). An add that needs several can be
cut short between two, says how far it came, and can always be repeated. Milvus keeps no vectors to re-rank by, and
ranks by Hamming distance only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ...errors import InputError, ServerError
from ...hamming.bits import as_octets, check_bits
from ..base import Index, Ranking
from ..filters import Where
from ..header import About
from ..matches import Item, Matches
from ..rows import Rows
from ..texts import Texts
from ..validation import check_items, check_keys, check_number, check_queries
from .search import MOST, Entity, Search, as_matches, codes_of, fields_of, query, windows
from .server import KEYS, LONGEST_TEXT, Milvus, identity

_REQUEST = 16 << 20  # bytes


class MilvusIndex(Index):
    """An index in two collections of a Milvus server."""

    keeps_vectors = False

    def __init__(self, address: str, bits: int | None, model: str | None, timeout: float) -> None:
        self._milvus = milvus = Milvus(address, timeout)
        self.location = milvus.name
        self._last = 0  # place
        try:
            with milvus.explained():
                self._about = self._found(bits, model)
                self.bits = self._about.bits
                milvus.check(self.bits, milvus.items, milvus.facts)
                self._options = milvus.search_options()
        except BaseException:
            milvus.close()
            raise

    def _found(self, bits: int | None, model: str | None) -> About:
        """What the index is, made now where it is missing."""
        milvus = self._milvus
        if not milvus.client.has_collection(milvus.facts):
            if milvus.client.has_collection(milvus.items):  # another's, or all that a killed process made
                milvus.check(bits and check_bits(bits), milvus.items)
            if bits is None:
                raise InputError(f"there is no index at {self.location}: give bits= to make one")
            milvus.make(milvus.items, check_bits(bits))  # first: without facts nobody takes it for an index
            milvus.make(milvus.facts, bits)
        stored = milvus.fact("about")
        if stored is None:
            if bits is None:
                raise InputError(f"there is no index at {self.location}: give bits= to make one")
            stored = About(check_bits(bits), model).to_json().decode()
            milvus.set_fact("about", stored)
        about = About.from_json(stored.encode(), self.location)
        if bits is not None and check_bits(bits) != about.bits:
            raise InputError(
                f"bits={bits}, but {self.location} holds codes of {about.bits} bits: open it with that, or none"
            )
        milvus.make(milvus.items, about.bits)
        if model is not None and model != about.model:
            about = about.with_model(model, len(self), self.location)
            milvus.set_fact("about", about.to_json().decode())
        return about

    @property
    def model(self) -> str | None:  # type: ignore[override]  # read only, where the interface allows more
        """The fingerprint of the model that made the codes, where it was given."""
        return self._about.model

    def add(
        self, keys: Sequence[str], codes: Any, metadata: Sequence[Any] | None = None, *, vectors: Any = None
    ) -> int:
        """Stores items, and gives how many keys are new. Whole or not at all where they fit one request of 16 MB.

        Where they do not and the server goes away, the error says how many are stored; the same call can be repeated.
        """
        if vectors is not None:
            self._no_vectors()
        encoded, packed, texts = check_items(keys, codes, metadata, self.bits)
        if not encoded:
            return 0
        texts = texts or [b""] * len(encoded)
        longest = max(map(len, texts))
        if longest > LONGEST_TEXT:
            raise InputError(f"metadata takes {longest} bytes, and Milvus stores at most {LONGEST_TEXT}: store less")
        names = [key.decode() for key in encoded]
        known = {one["key"]: one["place"] for one in self._entities(names, ["key", "place"])}
        first = max(time.time_ns(), self._last + 1)  # the clock orders what several processes add
        self._last = first + len(names)
        entities = [
            {
                "id": identity(name),
                "key": name,
                "place": known.get(name, first + number),
                "code": code.tobytes(),
                "metadata": text.decode(),
                "fields": fields_of(text),
            }
            for number, (name, code, text) in enumerate(zip(names, packed, texts, strict=True))
        ]
        stored = 0
        for some in _requests(entities):
            try:
                with self._milvus.explained():
                    self._milvus.client.upsert(self._milvus.items, some, timeout=self._milvus.timeout)
            except ServerError as problem:
                if len(some) == len(entities):
                    raise
                raise ServerError(
                    f"{problem}; the first {stored:,} of {len(entities):,} items are stored, of the next {len(some):,} "
                    "all or none, and no other: repeat the same add"
                ) from None
            stored += len(some)
        return len(names) - len(known)

    def remove(self, keys: Sequence[str]) -> int:
        """Takes items out, and gives how many of the keys were there."""
        there = [one["id"] for one in self._entities([key.decode() for key in check_keys(keys)], ["id"])]
        with self._milvus.explained():
            for start in range(0, len(there), KEYS):
                some = there[start : start + KEYS]
                self._milvus.client.delete(self._milvus.items, ids=some, timeout=self._milvus.timeout)
        return len(there)

    def search(
        self,
        codes: Any,
        k: int = 10,
        *,
        where: dict[str, Any] | None = None,
        offset: int = 0,
        ranking: Ranking = "hamming",
        vectors: Any = None,
        rerank: bool = False,
    ) -> list[Matches]:
        """The nearest k items of each code, exactly: see `Index.search`."""
        if rerank:
            self._no_vectors()
        if ranking == "asymmetric":
            raise InputError(
                f'{self.location} is in Milvus, which has no ranking="asymmetric": use "hamming", or copy the index to '
                "a folder or PostgreSQL with adsh index copy"
            )
        k, offset = check_number("k", k, 1), check_number("offset", offset, 0)
        searches = self._searches(codes, ranking, where)
        with self._milvus.explained():
            return [as_matches(search.top(k + offset)[offset:], self._milvus) for search in searches]

    def within(
        self,
        codes: Any,
        radius: int,
        *,
        where: dict[str, Any] | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[Matches]:
        """All items of each code within a Hamming distance, nearest first."""
        radius, offset = check_number("radius", radius, 0), check_number("offset", offset, 0)
        stop = None if limit is None else offset + check_number("limit", limit, 1)
        searches = self._searches(codes, "hamming", where)
        with self._milvus.explained():
            return [as_matches(search.within(radius)[offset:stop], self._milvus) for search in searches]

    def _searches(self, codes: Any, ranking: str, where: dict[str, Any] | None) -> list[Search]:
        queries = check_queries(codes, ranking, self.bits)
        condition = None if where is None else Where(where)
        asked = [as_octets(query.words[None], self.bits).tobytes() for query in queries]
        return [Search(self._milvus, code, self.bits, condition, self._options) for code in asked]

    def get(self, keys: Sequence[str]) -> list[Item | None]:
        """The items of these keys as they are stored; None for a key that is not there."""
        entities = self._entities([key.decode() for key in check_keys(keys)], ["key", "place", "code", "metadata"])
        found = {item.key: item for item in _as_rows(entities).items()} if entities else {}
        return [found.get(key) for key in keys]

    def note(self, name: str, text: str) -> None:
        """Keeps a short text beside the items."""
        self._milvus.set_fact(f"note:{name}", text)

    def noted(self, name: str) -> str | None:
        """The text kept under this name."""
        return self._milvus.fact(f"note:{name}")

    def batches(self, size: int = 1 << 14) -> Iterator[Rows]:
        """All items as columns, in the order of insertion, so many at a time at most."""
        with self._milvus.explained():
            for window in windows(query(self._milvus), most=min(size + 1, MOST)):
                if window:
                    yield _as_rows(window)

    def compact(self) -> None:
        """Nothing: a Milvus server tidies by itself."""

    def verify(self) -> list[str]:
        """Reads every item and gives what is wrong: nothing, where all that were counted can be read."""
        problems: list[str] = []
        count, spare = 0, 8 * -(-self.bits // 8) - self.bits
        for rows in self.batches():
            count += len(rows)
            if spare and (rows.codes[:, -1] & ((1 << spare) - 1)).any():
                problems.append("a code has a 1 among the bits that only fill its last byte")
        if count != len(self):
            problems.append(f"{count} items can be read and {len(self)} are counted")
        return problems

    def info(self) -> dict[str, Any]:
        """What the index holds and how it is searched."""
        with self._milvus.explained():
            told = self._milvus.client.describe_index(self._milvus.items, "code") or {}
        return {
            "path": self.location,
            "items": len(self),
            "bits": self.bits,
            "model": self.model,
            "format_version": self._about.format_version,
            "search": f"scan (Milvus {told.get('index_type')})",
            "distinct_codes": None,  # Milvus does not count them
            "vector_dimensions": 0,
            "bytes": None,
        }

    def __len__(self) -> int:
        with self._milvus.explained():
            count = self._milvus.client.query(
                self._milvus.items,
                filter="",
                output_fields=["count(*)"],
                consistency_level="Strong",
                timeout=self._milvus.timeout,
            )
        return int(count[0]["count(*)"])

    def close(self) -> None:
        """Ends the use of this handle; what was added stays."""
        self._milvus.close()

    def _entities(self, keys: list[str], fields: list[str]) -> list[Entity]:
        return self._milvus.entities([identity(key) for key in keys], fields)

    def _no_vectors(self) -> NoReturn:
        raise InputError(
            f"{self.location} is in Milvus and keeps no vectors to order ties by: leave vectors= and rerank= out, or "
            "use a folder or PostgreSQL"
        )


def _requests(entities: list[Entity]) -> Iterator[list[Entity]]:
    """The entities in as few requests as their size allows."""
    some: list[Entity] = []
    size = 0
    for entity in entities:
        takes = 200 + len(entity["code"]) + 4 * len(entity["key"]) + 2 * len(entity["metadata"])
        if some and size + takes > _REQUEST:
            yield some
            some, size = [], 0
        some.append(entity)
        size += takes
    yield some


def _as_rows(entities: list[Entity]) -> Rows:
    texts = [one["metadata"].encode() for one in entities]
    return Rows(
        np.array([one["place"] for one in entities], dtype=np.int64),
        codes_of(entities),
        Texts.of([one["key"].encode() for one in entities]),
        Texts.of(texts) if any(texts) else None,
        None,
    )
