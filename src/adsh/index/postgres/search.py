"""Searches in SQL: the nearest codes first, then the items that have them, in the order of insertion.

A query is compared with the distinct codes; of each that is near enough, an index gives the first items. `reach` is how
many items the codes looked at have at least: all codes at one distance are looked at together, for their items tie.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from ...hamming.bits import Codes, as_words
from ...hamming.query import Query
from ..filters import Where
from ..matches import Matches
from .filters import condition
from .schema import Tables
from .server import Connection

Found = tuple[str, float, str, str | None]  # key, distance, code, metadata

_MORE = 8  # times as many items are looked at, where a filter refused too many
# Every code has an item, so the nearest `reach` codes are enough: where codes are many, few are kept and counted.
_NEAREST: LiteralString = """
most AS (SELECT max(distance) AS distance
         FROM (SELECT code <~> %s::bit({bits}) AS distance FROM {codes} ORDER BY distance LIMIT %s) AS first),
far AS MATERIALIZED (SELECT * FROM (SELECT code, items, code <~> %s::bit({bits}) AS distance FROM {codes}) AS known
                     WHERE distance <= (SELECT distance FROM most)),
levels AS (SELECT distance, sum(sum(items)) OVER (ORDER BY distance) - sum(items) AS before FROM far GROUP BY distance),
near AS (SELECT code, distance FROM far JOIN levels USING (distance) WHERE before < %s)
"""
_WITHIN: LiteralString = """
near AS MATERIALIZED (SELECT * FROM (SELECT code, code <~> %s::bit({bits}) AS distance FROM {codes}) AS far
                      WHERE distance <= %s)
"""
_GIVEN: LiteralString = "near AS (SELECT * FROM unnest(%s::bit({bits})[], %s::float8[]) AS given (code, distance))"
_FIRST: LiteralString = """
SELECT item.key, near.distance, near.code::text, item.metadata::text
FROM near CROSS JOIN LATERAL (SELECT key, place, metadata FROM {items}
                              WHERE {items}.code = near.code AND {wanted} ORDER BY place LIMIT %s) AS item
ORDER BY near.distance, item.place LIMIT %s
"""
_JOINED: LiteralString = """
SELECT item.key, near.distance, near.code::text, item.metadata::text
FROM near JOIN {items} AS item ON item.code = near.code AND {wanted}
ORDER BY near.distance, item.place LIMIT %s
"""
_BY_VECTOR: LiteralString = """
SELECT item.key, near.distance, near.code::text, item.metadata::text
FROM near JOIN {items} AS item ON item.code = near.code AND {wanted}
ORDER BY near.distance, item.vector <-> %s::halfvec NULLS LAST, item.place LIMIT %s
"""


@dataclass(frozen=True)
class Search:
    """One transaction's searches."""

    connection: Connection
    tables: Tables
    bits: int
    where: Where | None
    distributed: bool = False  # Citus takes no LATERAL with a LIMIT: all items of the nearest codes are read there
    _cache: dict[str, Any] = field(default_factory=dict)

    def top(self, query: Query, code: str, k: int, offset: int, vector: NDArray[np.int8] | None) -> Matches:
        """The nearest k after the first `offset`; ties in the order of insertion, or of a vector's distance."""
        wanted = reach = limit = k + offset
        total = None  # a sum over all codes: asked for where it is needed
        while True:
            near, values = self._nearest(query, code, reach)
            rows = self._items(near, values, limit, vector)
            kept = self._accepted(rows)
            enough = len(kept) >= wanted
            if total is None and not enough:
                total = self.tables.count(self.connection)
            if enough or total is None or (reach >= total and len(rows) < limit):
                return as_matches(kept[offset:wanted], query.table is not None)
            if reach >= total:
                limit *= _MORE  # PostgreSQL let more through than the filter does
            reach = min(reach * _MORE, max(total, 1))

    def within(self, code: str, radius: int, offset: int, limit: int | None) -> Matches:
        """All within the radius, or a page of them."""
        stop = None if limit is None else offset + limit
        rows = self._items(_WITHIN, [code, radius], None if self.where else stop, None)
        return as_matches(self._accepted(rows)[offset:stop], False)

    def _accepted(self, rows: list[Found]) -> list[Found]:
        """Those that the filter lets through: PostgreSQL may have let through a few more."""
        where = self.where
        return rows if where is None else [row for row in rows if where.holds(json.loads(row[3] or "{}"))]

    def _nearest(self, query: Query, code: str, reach: int) -> tuple[LiteralString, list[Any]]:
        if query.table is None:
            return _NEAREST, [code, reach, code, reach]
        if "codes" not in self._cache:
            found = self.connection.execute(self.tables.sql("SELECT code::text, items FROM {codes}")).fetchall()
            texts, counts = [row[0] for row in found], np.array([row[1] for row in found], dtype=np.int64)
            self._cache["codes"] = texts, counts, as_words(from_bits(texts, self.bits))
        texts, counts, words = self._cache["codes"]
        far = query.distances(words)
        order = np.argsort(far, kind="stable")
        before = np.cumsum(counts[order]) - counts[order]
        distances = far[order]
        enough = np.flatnonzero(before >= reach)
        if len(enough):  # what ties with the last that is needed is needed too
            order = order[distances <= distances[enough[0] - 1]]
        return _GIVEN, [[texts[at] for at in order.tolist()], far[order].tolist()]

    def _items(
        self, near: LiteralString, values: list[Any], limit: int | None, vector: NDArray[np.int8] | None
    ) -> list[Found]:
        wanted, parameters = condition(self.where)
        items: LiteralString = _FIRST
        last: list[Any] = [limit, limit]
        if vector is not None:
            items, last = _BY_VECTOR, [as_halfvec(vector), limit]
        elif self.distributed:
            items, last = _JOINED, [limit]
        statement = self.tables.sql("WITH " + near + items, bits=sql.Literal(self.bits), wanted=wanted)
        rows = self.connection.execute(statement, [*values, *parameters, *last])
        return rows.fetchall()


def as_matches(rows: list[Found], real: bool) -> Matches:
    """What a search gives, out of rows of key, distance, code and metadata."""
    distances = np.array([row[1] for row in rows], dtype=np.float64)
    return Matches(
        [row[0] for row in rows],
        distances if real else distances.astype(np.int64),
        lambda: [row[3] or "" for row in rows],
        lambda: from_bits([row[2] for row in rows], len(rows[0][2]) if rows else 8),
    )


def to_bits(codes: Codes, bits: int) -> list[str]:
    """Packed codes as PostgreSQL writes them: 0101…"""
    digits = (np.unpackbits(codes, axis=1, count=bits) + ord("0")).tobytes().decode("ascii")
    return [digits[at : at + bits] for at in range(0, len(digits), bits)]


def from_bits(texts: list[str], bits: int) -> Codes:
    """What `to_bits` was given."""
    digits = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).reshape(len(texts), bits)
    return np.packbits(digits == ord("1"), axis=1)


def as_halfvec(vector: NDArray[np.int8]) -> str:
    """A small vector as pgvector writes it; its numbers of one byte are exact there, and so is their distance."""
    return json.dumps(vector.tolist(), separators=(",", ":"))
