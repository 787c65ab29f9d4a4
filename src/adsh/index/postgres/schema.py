"""The tables of an index in PostgreSQL, made and brought up to date by version.

    NAME_items(key, place, code, metadata, vector)    one row an item; place: the order of insertion
    NAME_codes(code, items)                           each distinct code, and how many items have it
    NAME_facts(name, value)                           what the index is, how its vectors are made, notes

Writers of one index take turns by an advisory lock, so that the counts of codes are right at every commit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import LiteralString

from psycopg import errors, sql

from ...errors import FolderError, InputError, ServerError
from ...hamming.bits import check_bits
from ..header import About
from .server import Connection, Server

# How each version is made from the one before. Never changed once released: a newer version is added below.
MIGRATIONS: list[tuple[LiteralString, ...]] = [
    (
        "CREATE TABLE {facts} (name text PRIMARY KEY, value bytea NOT NULL)",
        # an update of a count stays on its page, where the next read tidies up
        "CREATE TABLE {codes} (code bit({bits}) PRIMARY KEY, items bigint NOT NULL) WITH (fillfactor = 50)",
        """CREATE TABLE {items} (key text COLLATE "C" PRIMARY KEY, place bigint NOT NULL, code bit({bits}) NOT NULL,
                                 metadata jsonb, vector halfvec)""",
        "CREATE INDEX ON {items} (code, place)",
        "CREATE INDEX ON {items} (place)",
    ),
]
_PGVECTOR = (0, 7)  # the first with <~> and halfvec
_SHAPES = {
    "facts": {"name": "text", "value": "bytea"},
    "codes": {"code": "bit", "items": "bigint"},
    "items": {"key": "text", "place": "bigint", "code": "bit", "metadata": "jsonb", "vector": "halfvec"},
}
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""


@dataclass(frozen=True)
class Tables:
    """The tables of one index."""

    name: str

    def sql(self, statement: LiteralString, **more: sql.Composable) -> sql.Composed:
        """A statement with the names of the tables filled in."""
        named = {table: sql.Identifier(f"{self.name}_{table}") for table in (*_SHAPES, "new")}
        return sql.SQL(statement).format(**named, **more)

    def lock(self, connection: Connection) -> None:
        """Waits for other writers of this index; to the end of the transaction."""
        connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('adsh ' || coalesce(current_schema(), '') || ' ' || %s, 0))",
            [self.name],
        )

    def fact(self, connection: Connection, name: str) -> bytes | None:
        """What is stored under this name."""
        found = connection.execute(self.sql("SELECT value FROM {facts} WHERE name = %s"), [name]).fetchone()
        return None if found is None else bytes(found[0])

    def set_fact(self, connection: Connection, name: str, value: bytes) -> None:
        """Stores a value under this name."""
        statement = "INSERT INTO {facts} VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        connection.execute(self.sql(statement), [name, value])

    def count(self, connection: Connection) -> int:
        """How many items there are."""
        found = connection.execute(self.sql("SELECT coalesce(sum(items), 0) FROM {codes}")).fetchone()
        assert found is not None
        return int(found[0])


def found_tables(server: Server, tables: Tables, bits: int | None, model: str | None) -> About:
    """What the index is, made now where it is missing; bits and model, where given, have to be its own."""
    with server.plain() as connection:
        _check_encoding(server, connection)
        there = {table: _columns(connection, f"{tables.name}_{table}") for table in _SHAPES}
    if not any(there.values()):
        if bits is None:
            raise InputError(f"there is no index at {server.name}: give bits= to make one")
        check_bits(bits)
        _check_extension(server, make=True)
        with server.writing() as connection:
            tables.lock(connection)
            if not _columns(connection, f"{tables.name}_facts"):  # else another process was faster
                _migrate(connection, tables, About(bits, model, 0))
        with server.plain() as connection:
            there = {table: _columns(connection, f"{tables.name}_{table}") for table in _SHAPES}
    _check_shapes(server, tables, there)
    _check_extension(server, make=False)
    with server.reading() as connection:
        about = _about(server, connection, tables)
    if bits is not None and check_bits(bits) != about.bits:
        raise InputError(f"bits={bits}, but {server.name} holds codes of {about.bits} bits: open it with that, or none")
    if about.format_version < len(MIGRATIONS) or (model is not None and model != about.model):
        with server.writing() as connection:
            tables.lock(connection)
            about = _migrate(connection, tables, _about(server, connection, tables))
            if model is not None:
                about = about.with_model(model, tables.count(connection), server.name)
                tables.set_fact(connection, "about", about.to_json())
    return about


def may_be_distributed(server: Server) -> bool:
    """Whether the server has Citus, which may keep the items on several."""
    with server.reading() as connection:
        return connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchone() is not None


def _about(server: Server, connection: Connection, tables: Tables) -> About:
    stored = tables.fact(connection, "about")
    if stored is None:
        raise _another_shape(server, f"{tables.name}_facts")
    return About.from_json(stored, server.name, len(MIGRATIONS))


def _migrate(connection: Connection, tables: Tables, about: About) -> About:
    """Brings the tables from this version to the newest."""
    if about.format_version == len(MIGRATIONS):
        return about
    for version in MIGRATIONS[about.format_version :]:
        for statement in version:
            connection.execute(tables.sql(statement, bits=sql.Literal(about.bits)))
    about = replace(about, format_version=len(MIGRATIONS))
    tables.set_fact(connection, "about", about.to_json())
    return about


def _check_encoding(server: Server, connection: Connection) -> None:
    found = connection.execute("SELECT current_setting('server_encoding')").fetchone()
    assert found is not None
    if found[0] != "UTF8":
        raise ServerError(
            f"the database of {server.name} is encoded as {found[0]}: keys are any Unicode text; make one with "
            "createdb --encoding=UTF8 --template=template0"
        )


def _columns(connection: Connection, table: str) -> dict[str, str]:
    rows = connection.execute(_COLUMNS, [table]).fetchall()
    return {name: kind.rpartition(".")[2].partition("(")[0] for name, kind in rows}


def _check_shapes(server: Server, tables: Tables, there: dict[str, dict[str, str]]) -> None:
    for table, wanted in _SHAPES.items():
        if not wanted.items() <= there[table].items():  # columns that others added are no harm
            raise _another_shape(server, f"{tables.name}_{table}")


def _another_shape(server: Server, table: str) -> FolderError:
    return FolderError(
        f"the table {table} of {server.name} is missing or not one that adsh made: name another with ?table=NAME"
    )


def _check_extension(server: Server, *, make: bool) -> None:
    with server.plain() as connection:
        if make:
            _make_extension(server, connection)
        version, known = connection.execute(
            "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'), to_regtype('halfvec')::text"
        ).fetchone() or (None, None)
    if version is not None and tuple(map(int, version.split(".")[:2])) < _PGVECTOR:
        raise ServerError(
            f"{server.name} has pgvector {version}, and 0.7 or newer is needed: upgrade it on the server, then run "
            "ALTER EXTENSION vector UPDATE"
        )
    if known is None:
        raise ServerError(
            f"{server.name} does not find pgvector's types: put the schema of the extension vector on the search_path"
        )


def _make_extension(server: Server, connection: Connection) -> None:
    if connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        return
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except errors.UniqueViolation:
        return  # another process was faster
    except errors.InsufficientPrivilege:
        raise ServerError(
            f"{server.name} has no extension vector, and this user may not add it: have an administrator run "
            "CREATE EXTENSION vector in this database"
        ) from None
    except (errors.FeatureNotSupported, errors.UndefinedFile) as problem:
        raise ServerError(
            f"{server.name} has no pgvector ({server.told(problem)}): install it on the server (the package "
            "postgresql-NN-pgvector, or github.com/pgvector/pgvector), then repeat this"
        ) from None
