"""Exact search in Milvus, which returns at most 16,384 entities at once, and ties in no defined order.

Larger results are read by windows of the insertion order: a window that comes back full is halved, so that each that
is used is complete. Windows come in the order of insertion, and are read only as far as needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...hamming.bits import Codes
from ..filters import Filter
from ..matches import Matches
from .server import Milvus

MOST = 16384
EVERYTHING = (0, (1 << 63) - 1)  # the window of all items
_GENERATION = "·generation"  # no name of metadata that `fields_of` takes: it is not ASCII
_FIELDS = ["id", "key", "place", "metadata"]  # no code: milvus-lite returns none with a search

Entity = dict[str, Any]


@dataclass(frozen=True)
class Search:
    """The searches of one code."""

    milvus: Milvus
    code: bytes
    bits: int
    where: Filter | None
    options: dict[str, int]

    def top(self, count: int) -> list[Entity]:
        """Return the `count` nearest, ties in the order of insertion."""
        limit = min(count, MOST)
        first = self._request(EVERYTHING, limit, {})
        if len(first) < limit:
            return self._accepted(first)[:count]
        last = int(first[-1]["distance"])  # other entities at this distance may have been inserted earlier
        found = self._accepted([entity for entity in first if entity["distance"] < last])
        for distance in range(last, self.bits + 1):
            for window in windows(self._at(distance, distance)):
                found += self._accepted(window)
                if len(found) >= count:
                    return found[:count]
        return found

    def within(self, radius: int) -> list[Entity]:
        """Return all within a distance, nearest first."""
        found = [entity for window in windows(self._at(0, min(radius, self.bits))) for entity in window]
        return self._accepted(found)

    def _at(self, least: int, greatest: int) -> Read:
        bounds = {"radius": greatest + 1, "range_filter": least}  # the first exclusive, the second inclusive
        return lambda window, limit: self._request(window, limit, bounds)

    def _request(self, window: Window, limit: int, bounds: dict[str, int]) -> list[Entity]:
        found = self.milvus.client.search(
            self.milvus.items,
            [self.code],
            limit=limit,
            filter=" and ".join([*_bounds(window), *conditions(self.where)]),
            output_fields=_FIELDS,
            search_params={"metric_type": "HAMMING", "params": {**self.options, **bounds}},
            consistency_level="Strong",
            timeout=self.milvus.timeout,
        )[0]
        return [{**hit["entity"], "distance": hit["distance"]} for hit in found]

    def _accepted(self, found: list[Entity]) -> list[Entity]:
        where = self.where
        accepted = found if where is None else [entity for entity in found if where.accepts(entity["metadata"])]
        return sorted(accepted, key=lambda entity: (entity["distance"], entity["place"]))


Window = tuple[int, int]  # of the insertion order: from, and up to, not including
Read = Callable[[Window, int], list[Entity]]  # (window, most): returns at most `most` entities of the window


def windows(read: Read, window: Window = EVERYTHING, most: int | None = None) -> Iterator[list[Entity]]:
    """Yield all entities of a window in the order of insertion, in complete pieces.

    Args:
        read: reads entities.
        window: where to read them.
        most: how many entities a piece has fewer than; as many as Milvus returns at once, if None.

    Yields:
        The entities of a piece, sorted by their order of insertion.
    """
    most = most or MOST
    found = read(window, most)
    if len(found) < most:
        yield sorted(found, key=lambda entity: entity["place"])
        return
    insertion_order = sorted(entity["place"] for entity in found)
    middle = max(insertion_order[len(insertion_order) // 2], window[0] + 1)
    yield from windows(read, (window[0], middle), most)
    yield from windows(read, (middle, window[1]), most)


def read_all(milvus: Milvus) -> Read:
    """Return a function that reads the entities of a window, whatever their codes."""
    return read_matching(milvus, None)


def read_matching(milvus: Milvus, where: Filter | None) -> Read:
    """Return a function that reads the entities of a window that may meet a filter."""
    return lambda window, limit: list(
        milvus.client.query(
            milvus.items,
            filter=" and ".join([*_bounds(window), *conditions(where)]) or "place >= 0",
            output_fields=[*_FIELDS, "code"],
            limit=limit,
            consistency_level="Strong",
            timeout=milvus.timeout,
        )
    )


def read_outdated(milvus: Milvus, generation: int) -> Read:
    """Return a function that reads the entities of a window whose codes are by networks of earlier generations."""
    earlier = f'fields["{_GENERATION}"] < {generation}'
    return lambda window, limit: list(
        milvus.client.query(
            milvus.items,
            filter=" and ".join([*_bounds(window), earlier]),
            output_fields=_FIELDS,
            limit=limit,
            consistency_level="Strong",
            timeout=milvus.timeout,
        )
    )


def mark_of(generation: int | None) -> dict[str, Any]:
    """Return what `fields` holds besides metadata: the generation of the model whose network gave the code."""
    return {} if generation is None else {_GENERATION: generation}


def generation_of(entity: Entity) -> int | None:
    """Return what `mark_of` put into an entity's fields; None for nothing."""
    generation = entity["fields"].get(_GENERATION)
    return None if generation is None else int(generation)


def conditions(where: Filter | None) -> list[str]:
    """Return conditions in Milvus' language that let through everything that `Filter`, applied afterwards, accepts."""
    found: list[str] = []
    if where is None:
        return found
    for name, test, value in where.tests:
        choices = list(value) if test == "in" else [value]
        if test in ("eq", "in") and choices and _is_simple(name) and all(map(_is_simple, choices)):
            found.append(f'json_contains_any(fields["{name}"], {json.dumps(choices)})')
    alternatives = [conditions(one) for one in where.alternatives]
    if alternatives and all(alternatives):
        each = [f"({' and '.join(some)})" for some in alternatives]
        found.append(f"({' or '.join(each)})")
    return found


def fields_of(text: bytes) -> dict[str, list[str]]:
    """Return what `conditions` looks for in metadata: the texts of each field, those of nested lists included."""
    metadata = json.loads(text) if text else {}
    return {name: texts for name, value in metadata.items() if _is_simple(name) and (texts := list(_texts(value)))}


def as_matches(found: list[Entity], milvus: Milvus) -> Matches:
    """Return the matches of entities; their codes are fetched when they are first used."""

    def codes() -> Codes:
        ids = [entity["id"] for entity in found]
        by_id = {entity["id"]: entity for entity in milvus.entities(ids, ["id", "code"])}
        return codes_of([by_id[name] for name in ids])

    return Matches(
        [entity["key"] for entity in found],
        np.array([entity["distance"] for entity in found], dtype=np.int64),
        lambda: [entity["metadata"] for entity in found],
        codes,
    )


def codes_of(found: list[Entity]) -> Codes:
    """Return the packed codes of entities."""
    raw = [entity["code"][0] if isinstance(entity["code"], list) else entity["code"] for entity in found]
    return np.frombuffer(b"".join(raw), dtype=np.uint8).reshape(len(raw), -1)


def _bounds(window: Window) -> list[str]:
    least, end = window
    return [f"place >= {least}"] * (least > EVERYTHING[0]) + [f"place < {end}"] * (end < EVERYTHING[1])


def _is_simple(text: object) -> bool:
    """Whether it is a text that needs no quoting in a condition."""
    return isinstance(text, str) and text.isascii() and text.isprintable() and not set(text) & set("\"'\\")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif _is_simple(value):
        yield str(value)
