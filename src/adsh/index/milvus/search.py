"""Exact answers out of Milvus, which gives at most 16,384 entities at once, and ties in no order.

What may be more is asked for by windows of insertion: a window that comes back full is halved, so that each that is
used is complete. Windows come in the order of insertion, and are read only as far as needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...hamming.bits import Codes
from ..filters import Where
from ..matches import Matches
from .server import Milvus

MOST = 16384
ALWAYS = (0, (1 << 63) - 1)  # every place
_FIELDS = ["id", "key", "place", "metadata"]  # no code: milvus-lite gives none with a search

Entity = dict[str, Any]


@dataclass(frozen=True)
class Search:
    """The searches of one code."""

    milvus: Milvus
    code: bytes
    bits: int
    where: Where | None
    options: dict[str, int]

    def top(self, wanted: int) -> list[Entity]:
        """The nearest so many, ties in the order of insertion."""
        limit = min(wanted, MOST)
        first = self._ask(ALWAYS, limit, {})
        if len(first) < limit:
            return self._accepted(first)[:wanted]
        last = int(first[-1]["distance"])  # of those at this distance, others may have been inserted before
        found = self._accepted([entity for entity in first if entity["distance"] < last])
        for distance in range(last, self.bits + 1):
            for window in windows(self._at(distance, distance)):
                found += self._accepted(window)
                if len(found) >= wanted:
                    return found[:wanted]
        return found

    def within(self, radius: int) -> list[Entity]:
        """All within a distance, nearest first."""
        found = [one for window in windows(self._at(0, min(radius, self.bits))) for one in window]
        return self._accepted(found)

    def _at(self, least: int, greatest: int) -> Ask:
        bounds = {"radius": greatest + 1, "range_filter": least}  # the one exclusive, the other inclusive
        return lambda window, limit: self._ask(window, limit, bounds)

    def _ask(self, window: Window, limit: int, bounds: dict[str, int]) -> list[Entity]:
        found = self.milvus.client.search(
            self.milvus.items,
            [self.code],
            limit=limit,
            filter=" and ".join([*_places(window), *conditions(self.where)]),
            output_fields=_FIELDS,
            search_params={"metric_type": "HAMMING", "params": {**self.options, **bounds}},
            consistency_level="Strong",
            timeout=self.milvus.timeout,
        )[0]
        return [{**hit["entity"], "distance": hit["distance"]} for hit in found]

    def _accepted(self, found: list[Entity]) -> list[Entity]:
        where = self.where
        kept = found if where is None else [one for one in found if where.accepts(one["metadata"])]
        return sorted(kept, key=lambda one: (one["distance"], one["place"]))


Window = tuple[int, int]  # places from, and before
Ask = Callable[[Window, int], list[Entity]]


def windows(ask: Ask, window: Window = ALWAYS, most: int | None = None) -> Iterator[list[Entity]]:
    """All entities that `ask` knows of, in complete windows of less than `most` in the order of insertion."""
    most = most or MOST
    found = ask(window, most)
    if len(found) < most:
        yield sorted(found, key=lambda one: one["place"])
        return
    places = sorted(one["place"] for one in found)
    middle = max(places[len(places) // 2], window[0] + 1)
    yield from windows(ask, (window[0], middle), most)
    yield from windows(ask, (middle, window[1]), most)


def query(milvus: Milvus) -> Ask:
    """The entities of a window, whatever their codes."""
    return lambda window, limit: list(
        milvus.client.query(
            milvus.items,
            filter=" and ".join(_places(window) or ["place >= 0"]),
            output_fields=[*_FIELDS, "code"],
            limit=limit,
            consistency_level="Strong",
            timeout=milvus.timeout,
        )
    )


def conditions(where: Where | None) -> list[str]:
    """What Milvus can refuse by itself: it lets through all that `Where` accepts, which has the last word."""
    found = []
    for name, test, wanted in [] if where is None else where.tests:
        choices = list(wanted) if test == "in" else [wanted]
        if test in ("eq", "in") and choices and _is_simple(name) and all(map(_is_simple, choices)):
            found.append(f'json_contains_any(fields["{name}"], {json.dumps(choices)})')
    return found


def fields_of(text: bytes) -> dict[str, list[str]]:
    """What `conditions` looks for in metadata: the texts of each field, of lists in lists too."""
    metadata = json.loads(text) if text else {}
    return {name: texts for name, value in metadata.items() if _is_simple(name) and (texts := list(_texts(value)))}


def as_matches(found: list[Entity], milvus: Milvus) -> Matches:
    """What a search gives; the codes are fetched where they are asked for."""

    def codes() -> Codes:
        ids = [one["id"] for one in found]
        by_id = {one["id"]: one for one in milvus.entities(ids, ["id", "code"])}
        return codes_of([by_id[one] for one in ids])

    return Matches(
        [one["key"] for one in found],
        np.array([one["distance"] for one in found], dtype=np.int64),
        lambda: [one["metadata"] for one in found],
        codes,
    )


def codes_of(found: list[Entity]) -> Codes:
    """The packed codes of entities."""
    raw = [one["code"][0] if isinstance(one["code"], list) else one["code"] for one in found]
    return np.frombuffer(b"".join(raw), dtype=np.uint8).reshape(len(raw), -1)


def _places(window: Window) -> list[str]:
    least, end = window
    return [f"place >= {least}"] * (least > ALWAYS[0]) + [f"place < {end}"] * (end < ALWAYS[1])


def _is_simple(text: object) -> bool:
    """Whether it means the same in a filter without any quoting."""
    return isinstance(text, str) and text.isascii() and text.isprintable() and not set(text) & set("\"'\\")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif _is_simple(value):
        yield str(value)
