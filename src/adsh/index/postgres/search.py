"""Searches in SQL: the nearest codes first, then the items that have them, in the order of insertion.

A query is compared with the distinct codes; a database index then finds the first items of each code that is near
enough. `reach` is how many items the codes must have together; all codes at one distance are taken, as their items tie.
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
from ..filters import Filter
from ..matches import Matches
from .filters import condition
from .schema import Tables
from .server import Connection

Found = tuple[str, float, str, str | None]  # key, distance, code, metadata

_MORE = 8  # the factor by which a search is widened when a filter rejected too many
# Every code has an item, so the nearest `reach` codes are enough: if there are many codes, few are read and counted.
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
                              WHERE {items}.code = near.code AND {filtered} ORDER BY place LIMIT %s) AS item
ORDER BY near.distance, item.place LIMIT %s
"""
_JOINED: LiteralString = """
SELECT item.key, near.distance, near.code::text, item.metadata::text
FROM near JOIN {items} AS item ON item.code = near.code AND {filtered}
ORDER BY near.distance, item.place LIMIT %s
"""
_BY_VECTOR: LiteralString = """
SELECT item.key, near.distance, near.code::text, item.metadata::text
FROM near JOIN {items} AS item ON item.code = near.code AND {filtered}
ORDER BY near.distance, item.vector <-> %s::halfvec NULLS LAST, item.place LIMIT %s
"""


@dataclass(frozen=True)
class Search:
    """The searches of one transaction."""

    connection: Connection
    tables: Tables
    bits: int
    where: Filter | None
    distributed: bool = False  # Citus takes no LATERAL with a LIMIT: all items of the nearest codes are read there
    _cache: dict[str, Any] = field(default_factory=dict)

    def top(self, query: Query, code: str, k: int, offset: int, vector: NDArray[np.int8] | None) -> Matches:
        """Return the k nearest after the first `offset`.

        Args:
            query: the query.
            code: its code as PostgreSQL writes it.
            k: how many items to return.
            offset: how many to skip.
            vector: the small vector that orders ties; None for the order of insertion.

        Returns:
            The matches, nearest first.
        """
        stop = reach = limit = k + offset
        total = None  # a sum over all codes: computed only if it is needed
        while True:
            near, values = self._nearest(query, code, reach)
            rows = self._items(near, values, limit, vector)
            accepted = self._accepted(rows)
            enough = len(accepted) >= stop
            if total is None and not enough:
                total = self.tables.count(self.connection)
            if enough or total is None or (reach >= total and len(rows) < limit):
                return as_matches(accepted[offset:stop], query.is_asymmetric)
            if reach >= total:
                limit *= _MORE  # PostgreSQL let more through than the filter does
            reach = min(reach * _MORE, max(total, 1))

    def within(self, code: str, radius: int, offset: int, limit: int | None) -> Matches:
        """Return all within the radius, or a page of them.

        Args:
            code: the query's code as PostgreSQL writes it.
            radius: the largest distance.
            offset: how many of the nearest to skip.
            limit: how many to return at most; None for all.

        Returns:
            The matches, nearest first.
        """
        stop = None if limit is None else offset + limit
        rows = self._items(_WITHIN, [code, radius], None if self.where else stop, None)
        return as_matches(self._accepted(rows)[offset:stop], False)

    def _accepted(self, rows: list[Found]) -> list[Found]:
        """The rows that the filter accepts: PostgreSQL may have let through a few more."""
        where = self.where
        return rows if where is None else [row for row in rows if where.holds(json.loads(row[3] or "{}"))]

    def _nearest(self, query: Query, code: str, reach: int) -> tuple[LiteralString, list[Any]]:
        if not query.is_asymmetric:
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
        if len(enough):  # codes that tie with the last one are needed too
            order = order[distances <= distances[enough[0] - 1]]
        return _GIVEN, [[texts[at] for at in order.tolist()], far[order].tolist()]

    def _items(
        self, near: LiteralString, values: list[Any], limit: int | None, vector: NDArray[np.int8] | None
    ) -> list[Found]:
        filtered, parameters = condition(self.where)
        items: LiteralString = _FIRST
        last: list[Any] = [limit, limit]
        if vector is not None:
            items, last = _BY_VECTOR, [as_halfvec(vector), limit]
        elif self.distributed:
            items, last = _JOINED, [limit]
        statement = self.tables.sql("WITH " + near + items, bits=sql.Literal(self.bits), filtered=filtered)
        rows = self.connection.execute(statement, [*values, *parameters, *last])
        return rows.fetchall()


def as_matches(rows: list[Found], real: bool) -> Matches:
    """Return the matches of rows of key, distance, code and metadata; `real` distances stay floats."""
    distances = np.array([row[1] for row in rows], dtype=np.float64)
    return Matches(
        [row[0] for row in rows],
        distances if real else distances.astype(np.int64),
        lambda: [row[3] or "" for row in rows],
        lambda: from_bits([row[2] for row in rows], len(rows[0][2]) if rows else 8),
    )


def to_bits(codes: Codes, bits: int) -> list[str]:
    """Return packed codes as PostgreSQL writes them: 0101…"""
    digits = (np.unpackbits(codes, axis=1, count=bits) + ord("0")).tobytes().decode("ascii")
    return [digits[at : at + bits] for at in range(0, len(digits), bits)]


def from_bits(texts: list[str], bits: int) -> Codes:
    """Return the packed codes that `to_bits` was given."""
    digits = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).reshape(len(texts), bits)
    return np.packbits(digits == ord("1"), axis=1)


def as_halfvec(vector: NDArray[np.int8]) -> str:
    """Return a small vector as pgvector writes it; numbers of one byte are exact there, and so are their distances."""
    return json.dumps(vector.tolist(), separators=(",", ":"))
