"""Write and read the items of an index in PostgreSQL, within a transaction of the caller."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import errors, sql

from ...errors import InputError
from ...hamming.small_vectors import NONE
from ..filters import Filter
from ..rows import SAMPLE_BYTES, Rows, no_vectors
from ..text_column import TextColumn
from ..validation import Batch
from .filters import condition
from .schema import Tables
from .search import as_halfvec, from_bits, to_bits
from .server import Connection

_AT_A_TIME = 10_000  # keys in one statement
_EXPONENTS = re.compile(
    r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?[eE][+-]?\d+'
)  # texts, to skip them, and numbers with an exponent
_NEW = """
CREATE TEMP TABLE IF NOT EXISTS {new} (number bigint, key text COLLATE "C", code bit({bits}), metadata jsonb,
                                       vector halfvec, generation integer) ON COMMIT DELETE ROWS
"""
_REPLACED = """
WITH old AS (SELECT item.code, count(*) AS times FROM {items} AS item JOIN {new} USING (key) GROUP BY item.code)
UPDATE {codes} AS known SET items = known.items - old.times FROM old WHERE known.code = old.code RETURNING old.times
"""
_INSERT = """
INSERT INTO {items} (key, place, code, metadata, vector, generation)
SELECT key, number + (SELECT coalesce(max(place), 0) FROM {items}), code, metadata, vector, generation FROM {new}
ON CONFLICT (key) DO UPDATE SET code = excluded.code, metadata = excluded.metadata, vector = excluded.vector,
                                generation = excluded.generation
"""
_COUNT = """
INSERT INTO {codes} AS known (code, items) SELECT code, count(*) FROM {new} GROUP BY code
ON CONFLICT (code) DO UPDATE SET items = known.items + excluded.items
"""
_DELETE = """
WITH deleted AS (DELETE FROM {items} WHERE key = ANY(%s::text[]) RETURNING code),
     old AS (SELECT code, count(*) AS times FROM deleted GROUP BY code)
UPDATE {codes} AS known SET items = known.items - old.times FROM old WHERE known.code = old.code RETURNING old.times
"""
_FORGET = "DELETE FROM {codes} WHERE items = 0"
_COLUMNS = "SELECT place, key, code::text, metadata::text, vector::real[] FROM {items} "


def insert_items(
    connection: Connection, tables: Tables, bits: int, batch: Batch, vectors: NDArray[np.int8] | None
) -> int:
    """Store items; those whose keys exist are replaced and keep their insertion order.

    Args:
        connection: a connection in a transaction that holds the lock of the index.
        tables: the tables of the index.
        bits: the length of the codes.
        batch: the items.
        vectors: their small vectors; None if they have none.

    Returns:
        How many keys are new.
    """
    _copy(connection, tables, bits, batch, vectors)
    replaced = sum(int(row[0]) for row in connection.execute(tables.sql(_REPLACED)))
    connection.execute(tables.sql(_INSERT))
    connection.execute(tables.sql(_COUNT))
    if replaced:
        connection.execute(tables.sql(_FORGET))
    return len(batch.keys) - replaced


def _copy(connection: Connection, tables: Tables, bits: int, batch: Batch, small: NDArray[np.int8] | None) -> None:
    """Copy a batch to a temporary table of this session, in one stream.

    Args:
        connection: a connection in a transaction.
        tables: the tables of the index.
        bits: the length of the codes.
        batch: the items.
        small: their small vectors; None if they have none.
    """
    connection.execute(tables.sql(_NEW, bits=sql.Literal(bits)))
    metadata: list[str | None] = [None] * len(batch.keys)
    if batch.metadata is not None:
        metadata = [_without_exponents(text.decode()) or None for text in batch.metadata]
    vectors: list[str | None] = [None] * len(batch.keys)
    if small is not None:
        vectors = [None if row[0] == NONE else as_halfvec(row) for row in small]
    generations = batch.generations or [None] * len(batch.keys)
    columns = (batch.keys, to_bits(batch.codes, bits), metadata, vectors, generations)
    try:
        with connection.cursor().copy(tables.sql("COPY {new} FROM STDIN")) as copy:
            for number, (key, *rest) in enumerate(zip(*columns, strict=True), 1):
                copy.write_row((number, key.decode(), *rest))
    except (errors.UntranslatableCharacter, errors.InvalidTextRepresentation):
        raise InputError(
            "metadata holds a text with a NUL or half a character (\\u0000, \\ud800): PostgreSQL stores neither; "
            "leave them out"
        ) from None
    connection.execute(tables.sql("ANALYZE {new}"))  # else a join with few new items may read all stored ones


def delete_items(connection: Connection, tables: Tables, keys: list[str]) -> int:
    """Delete items.

    Args:
        connection: a connection in a transaction that holds the lock of the index.
        tables: the tables of the index.
        keys: the items' keys.

    Returns:
        How many of the keys existed.
    """
    removed = 0
    for start in range(0, len(keys), _AT_A_TIME):
        deleted = connection.execute(tables.sql(_DELETE), [keys[start : start + _AT_A_TIME]])
        removed += sum(int(row[0]) for row in deleted)
    if removed:
        connection.execute(tables.sql(_FORGET))
    return removed


def generations_of(connection: Connection, tables: Tables, keys: list[str]) -> dict[str, int]:
    """Return the generation of the model for those of these items whose codes a network computed."""
    statement = tables.sql("SELECT key, generation FROM {items} WHERE key = ANY(%s::text[]) AND generation IS NOT NULL")
    return dict(connection.execute(statement, [keys]).fetchall())


def rows_behind(
    connection: Connection, tables: Tables, bits: int, key: str, count: int, where: Filter | None
) -> Rows | None:
    """Return the items that may meet a filter and whose keys follow this one in alphabetical order.

    Args:
        connection: a connection in a transaction.
        tables: the tables of the index.
        bits: the length of the codes.
        key: "" for the first items.
        count: how many to return at most.
        where: the filter; None for all items.

    Returns:
        The items in that order; None if there are none.
    """
    filtered, values = condition(where)
    statement = tables.sql(_COLUMNS + "WHERE key > %s AND {filtered} ORDER BY key LIMIT %s", filtered=filtered)
    found = connection.execute(statement, [key, *values, count]).fetchall()
    return _as_rows(found, bits) if found else None


def outdated_keys(connection: Connection, tables: Tables, generation: int, after: str, count: int) -> list[str]:
    """Return keys of items by networks of earlier generations, sorted.

    Args:
        connection: a connection in a transaction.
        tables: the tables of the index.
        generation: of the present model.
        after: only keys behind this one.
        count: how many at most.
    """
    statement = tables.sql("SELECT key FROM {items} WHERE generation < %s AND key > %s ORDER BY key LIMIT %s")
    return [row[0] for row in connection.execute(statement, [generation, after, count])]


def rows_of(connection: Connection, tables: Tables, bits: int, keys: list[str]) -> list[Rows]:
    """Return the items of these keys, without those that do not exist.

    Args:
        connection: a connection in a transaction.
        tables: the tables of the index.
        bits: the length of the codes.
        keys: the items' keys.

    Returns:
        Pieces of some thousand items.
    """
    batches = []
    statement = tables.sql(_COLUMNS + "WHERE key = ANY(%s::text[])")
    for start in range(0, len(keys), _AT_A_TIME):
        found = connection.execute(statement, [keys[start : start + _AT_A_TIME]]).fetchall()
        if found:
            batches.append(_as_rows(found, bits))
    return batches


def rows_after(connection: Connection, tables: Tables, bits: int, after: tuple[int, str], count: int) -> Rows | None:
    """Return the next items in the order of insertion; None if there are no more.

    Args:
        connection: a connection in a transaction.
        tables: the tables of the index.
        bits: the length of the codes.
        after: the insertion order and the key of the item before them: items of an older index may share a place.
        count: how many to return at most.

    Returns:
        The items, at most `count`.
    """
    statement = tables.sql(_COLUMNS + "WHERE (place, key) > (%s, %s::text) ORDER BY place, key LIMIT %s")
    found = connection.execute(statement, [*after, count]).fetchall()
    return _as_rows(found, bits) if found else None


def rows_spread(connection: Connection, tables: Tables, bits: int, count: int) -> Rows | None:
    """Return items of as many codes as possible; one code at a time, which distributed tables allow.

    They end where their metadata takes more than `SAMPLE_BYTES`.

    Args:
        connection: a connection in a transaction.
        tables: the tables of the index.
        bits: the length of the codes.
        count: how many to return at most.

    Returns:
        The items; None if there are none.
    """
    known = connection.execute(tables.sql("SELECT code::text FROM {codes} LIMIT %s"), [count]).fetchall()
    each = -(-count // max(1, len(known)))
    statement = tables.sql(_COLUMNS + "WHERE code = %s::bit({bits}) ORDER BY place LIMIT %s", bits=sql.Literal(bits))
    found: list[tuple[Any, ...]] = []
    size = 0
    with connection.cursor() as cursor:
        rows = (row for (code,) in known for row in cursor.stream(statement, [code, each]))
        for row in islice(rows, count):
            found.append(row)
            size += len(row[3] or "")
            if size > SAMPLE_BYTES:
                break
        rows.close()
    return _as_rows(found, bits) if found else None


def _as_rows(found: list[tuple[Any, ...]], bits: int) -> Rows:
    insertion_order, keys, codes, metadata, vectors = zip(*found, strict=True)
    small = None
    width = next((len(vector) for vector in vectors if vector is not None), None)
    if width is not None:
        small = no_vectors(len(found), width)
        for at, vector in enumerate(vectors):
            if vector is not None:
                small[at] = vector
    texts = [(text or "").encode() for text in metadata]
    return Rows(
        np.array(insertion_order, dtype=np.int64),
        from_bits(list(codes), bits),
        TextColumn.of([key.encode() for key in keys]),
        TextColumn.of(texts) if any(texts) else None,
        small,
    )


def _without_exponents(text: str) -> str:
    """JSON whose numbers have no exponent: PostgreSQL would return 1e30 as an integer, which Python distinguishes."""
    return _EXPONENTS.sub(lambda found: found[0] if found[0][0] == '"' else _digits(found[0]), text)


def _digits(number: str) -> str:
    digits = format(Decimal(number), "f")
    return digits if "." in digits else f"{digits}.0"
