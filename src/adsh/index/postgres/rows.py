"""Items into and out of the tables of an index in PostgreSQL; each call within a transaction of the caller."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import errors, sql

from ...errors import InputError
from ...hamming.bits import Codes
from ...hamming.small_vectors import NONE
from ..rows import Rows, no_vectors
from ..texts import Texts
from .schema import Tables
from .search import as_halfvec, from_bits, to_bits
from .server import Connection

_AT_A_TIME = 10_000  # keys in one statement
_EXPONENTS = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?[eE][+-]?\d+')  # texts, to pass them over, and such numbers
_NEW = """
CREATE TEMP TABLE IF NOT EXISTS {new} (number bigint, key text COLLATE "C", code bit({bits}), metadata jsonb,
                                       vector halfvec) ON COMMIT DELETE ROWS
"""
_REPLACED = """
WITH old AS (SELECT item.code, count(*) AS times FROM {items} AS item JOIN {new} USING (key) GROUP BY item.code)
UPDATE {codes} AS known SET items = known.items - old.times FROM old WHERE known.code = old.code RETURNING old.times
"""
_INSERT = """
INSERT INTO {items} (key, place, code, metadata, vector)
SELECT key, number + (SELECT coalesce(max(place), 0) FROM {items}), code, metadata, vector FROM {new}
ON CONFLICT (key) DO UPDATE SET code = excluded.code, metadata = excluded.metadata, vector = excluded.vector
"""
_COUNT = """
INSERT INTO {codes} AS known (code, items) SELECT code, count(*) FROM {new} GROUP BY code
ON CONFLICT (code) DO UPDATE SET items = known.items + excluded.items
"""
_DELETE = """
WITH gone AS (DELETE FROM {items} WHERE key = ANY(%s::text[]) RETURNING code),
     old AS (SELECT code, count(*) AS times FROM gone GROUP BY code)
UPDATE {codes} AS known SET items = known.items - old.times FROM old WHERE known.code = old.code RETURNING old.times
"""
_FORGET = "DELETE FROM {codes} WHERE items = 0"
_COLUMNS = "SELECT place, key, code::text, metadata::text, vector::real[] FROM {items} "


class Batch(NamedTuple):
    """Items to store, checked."""

    keys: list[bytes]
    codes: Codes
    metadata: list[bytes] | None
    vectors: NDArray[np.int8] | None


def put(connection: Connection, tables: Tables, bits: int, batch: Batch) -> int:
    """Stores items, those whose keys are there in their places, and gives how many are new."""
    _copy(connection, tables, bits, batch)
    replaced = sum(int(row[0]) for row in connection.execute(tables.sql(_REPLACED)))
    connection.execute(tables.sql(_INSERT))
    connection.execute(tables.sql(_COUNT))
    if replaced:
        connection.execute(tables.sql(_FORGET))
    return len(batch.keys) - replaced


def _copy(connection: Connection, tables: Tables, bits: int, batch: Batch) -> None:
    """Puts a batch into a table of this session: one stream for all of it."""
    connection.execute(tables.sql(_NEW, bits=sql.Literal(bits)))
    metadata: list[str | None] = [None] * len(batch.keys)
    if batch.metadata is not None:
        metadata = [_plainly(text.decode()) or None for text in batch.metadata]
    vectors: list[str | None] = [None] * len(batch.keys)
    if batch.vectors is not None:
        vectors = [None if row[0] == NONE else as_halfvec(row) for row in batch.vectors]
    columns = (batch.keys, to_bits(batch.codes, bits), metadata, vectors)
    try:
        with connection.cursor().copy(tables.sql("COPY {new} FROM STDIN")) as copy:
            for number, (key, *rest) in enumerate(zip(*columns, strict=True), 1):
                copy.write_row((number, key.decode(), *rest))
    except (errors.UntranslatableCharacter, errors.InvalidTextRepresentation):
        raise InputError(
            "metadata holds a text with a NUL or half a character (\\u0000, \\ud800): PostgreSQL stores neither; "
            "leave them out"
        ) from None
    connection.execute(tables.sql("ANALYZE {new}"))  # else a join with few new items may read all that are there


def take_out(connection: Connection, tables: Tables, keys: list[str]) -> int:
    """Removes items, and gives how many were there."""
    removed = 0
    for start in range(0, len(keys), _AT_A_TIME):
        gone = connection.execute(tables.sql(_DELETE), [keys[start : start + _AT_A_TIME]])
        removed += sum(int(row[0]) for row in gone)
    if removed:
        connection.execute(tables.sql(_FORGET))
    return removed


def rows_of(connection: Connection, tables: Tables, bits: int, keys: list[str]) -> list[Rows]:
    """The items of these keys, in parts; those that are not there are left out."""
    parts = []
    statement = tables.sql(_COLUMNS + "WHERE key = ANY(%s::text[])")
    for start in range(0, len(keys), _AT_A_TIME):
        found = connection.execute(statement, [keys[start : start + _AT_A_TIME]]).fetchall()
        if found:
            parts.append(_as_rows(found, bits))
    return parts


def rows_after(connection: Connection, tables: Tables, bits: int, place: int, count: int) -> Rows | None:
    """The next so many items after a place, in the order of insertion; None where there are no more."""
    statement = tables.sql(_COLUMNS + "WHERE place > %s ORDER BY place LIMIT %s")
    found = connection.execute(statement, [place, count]).fetchall()
    return _as_rows(found, bits) if found else None


def rows_spread(connection: Connection, tables: Tables, bits: int, count: int) -> Rows | None:
    """At most so many items, of as many codes as possible; a code at a time, which distributed tables allow too."""
    known = connection.execute(tables.sql("SELECT code::text FROM {codes} LIMIT %s"), [count]).fetchall()
    each = -(-count // max(1, len(known)))
    statement = tables.sql(_COLUMNS + "WHERE code = %s::bit({bits}) ORDER BY place LIMIT %s", bits=sql.Literal(bits))
    found = [row for code in known for row in connection.execute(statement, [code[0], each])]
    return _as_rows(found[:count], bits) if found else None


def _as_rows(found: list[tuple[Any, ...]], bits: int) -> Rows:
    places, keys, codes, metadata, vectors = zip(*found, strict=True)
    small = None
    width = next((len(vector) for vector in vectors if vector is not None), None)
    if width is not None:
        small = no_vectors(len(found), width)
        for at, vector in enumerate(vectors):
            if vector is not None:
                small[at] = vector
    texts = [(text or "").encode() for text in metadata]
    return Rows(
        np.array(places, dtype=np.int64),
        from_bits(list(codes), bits),
        Texts.of([key.encode() for key in keys]),
        Texts.of(texts) if any(texts) else None,
        small,
    )


def _plainly(text: str) -> str:
    """JSON whose numbers have no exponent: 1e30 would come back as a whole number, and Python tells these apart."""
    return _EXPONENTS.sub(lambda found: found[0] if found[0][0] == '"' else _digits(found[0]), text)


def _digits(number: str) -> str:
    digits = format(Decimal(number), "f")
    return digits if "." in digits else f"{digits}.0"
