"""The tables of an index in PostgreSQL: created, and migrated from older versions.

    NAME_items(key, place, code, metadata, vector,    one row per item; place: the order of insertion;
               generation)                            generation: of the model whose network gave the code
    NAME_codes(code, items)                           each distinct code, and how many items have it
    NAME_facts(name, value)                           the header, the projection of the vectors, notes

Writers of one index take turns by an advisory lock, so that the counts of codes are right at every commit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import LiteralString

from psycopg import errors, sql

from ...errors import FolderError, ServerError
from ...hamming.bits import check_bits
from ...models.fingerprint import ModelId
from ..header import HEADER, Header, no_index
from .server import Connection, Server

# The statements that lead from each version to the next. Released ones never change: a newer version is added below.
MIGRATIONS: list[tuple[LiteralString, ...]] = [
    (
        "CREATE TABLE {facts} (name text PRIMARY KEY, value bytea NOT NULL)",
        # an updated count stays on its page, where the next read cleans up
        "CREATE TABLE {codes} (code bit({bits}) PRIMARY KEY, items bigint NOT NULL) WITH (fillfactor = 50)",
        """CREATE TABLE {items} (key text COLLATE "C" PRIMARY KEY, place bigint NOT NULL, code bit({bits}) NOT NULL,
                                 metadata jsonb, vector halfvec)""",
        "CREATE INDEX ON {items} (code, place)",
        "CREATE INDEX ON {items} (place)",
    ),
    (
        "ALTER TABLE {items} ADD COLUMN generation integer",  # of the model whose network gave the code
        "CREATE INDEX ON {items} (generation, key) WHERE generation IS NOT NULL",
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
        """Return a statement with the names of the tables filled in."""
        named = {table: sql.Identifier(f"{self.name}_{table}") for table in (*_SHAPES, "new")}
        return sql.SQL(statement).format(**named, **more)

    def lock(self, connection: Connection) -> None:
        """Wait for other writers of this index; the lock is held to the end of the transaction."""
        connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('adsh ' || coalesce(current_schema(), '') || ' ' || %s, 0))",
            [self.name],
        )

    def fact(self, connection: Connection, name: str) -> bytes | None:
        """Return the value stored under this name; None if there is none."""
        found = connection.execute(self.sql("SELECT value FROM {facts} WHERE name = %s"), [name]).fetchone()
        return None if found is None else bytes(found[0])

    def set_fact(self, connection: Connection, name: str, value: bytes) -> None:
        """Store a value under this name.

        Args:
            connection: a connection in a transaction.
            name: of the fact.
            value: what replaces the stored value, if there is one.
        """
        statement = "INSERT INTO {facts} VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        connection.execute(self.sql(statement), [name, value])

    def count(self, connection: Connection) -> int:
        """Return how many items there are."""
        found = connection.execute(self.sql("SELECT coalesce(sum(items), 0) FROM {codes}")).fetchone()
        assert found is not None
        return int(found[0])


def create_or_open(server: Server, tables: Tables, bits: int | None, model: ModelId | None) -> Header:
    """Return the header of the index in these tables, which are created now if they are missing.

    Args:
        server: the server.
        tables: the tables.
        bits: the length of the codes; None for that of the existing index.
        model: the model that computes the codes; None if it is not known.

    Returns:
        The header as it is stored now.

    Raises:
        InputError: the index has other bits or another model, or there is none and no bits to create one with.
        FolderError: the tables are not those of an index.
    """
    with server.plain() as connection:
        _check_encoding(server, connection)
        columns = {table: _columns(connection, f"{tables.name}_{table}") for table in _SHAPES}
    if not any(columns.values()):
        if bits is None:
            raise no_index(server.name)
        check_bits(bits)
        _check_extension(server, create=True)
        with server.writing() as connection:
            tables.lock(connection)
            if not _columns(connection, f"{tables.name}_facts"):  # else another process was faster
                _migrate(connection, tables, Header.new(bits, model, 0))
        with server.plain() as connection:
            columns = {table: _columns(connection, f"{tables.name}_{table}") for table in _SHAPES}
    _check_shapes(server, tables, columns)
    _check_extension(server, create=False)
    with server.reading() as connection:
        header = read_header(server, connection, tables)
    header.check_bits(bits, server.name)
    if header.format_version < len(MIGRATIONS) or (model is not None and model.fingerprint != header.model):
        with server.writing() as connection:
            tables.lock(connection)
            header = _migrate(connection, tables, read_header(server, connection, tables))
            if model is not None:
                header = header.with_model(model, tables.count(connection), server.name)
                tables.set_fact(connection, HEADER, header.to_json())
    return header


def may_be_distributed(server: Server) -> bool:
    """Whether the server has Citus, which may distribute the items over several machines."""
    with server.reading() as connection:
        return connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchone() is not None


def read_header(server: Server, connection: Connection, tables: Tables) -> Header:
    """Return the header as it is stored.

    Args:
        server: the server.
        connection: a connection in a transaction.
        tables: the tables of the index.

    Raises:
        FolderError: there is none: the tables are not those of an index.
    """
    stored = tables.fact(connection, HEADER)
    if stored is None:
        raise _another_shape(server, f"{tables.name}_facts")
    return Header.from_json(stored, server.name, len(MIGRATIONS))


def _migrate(connection: Connection, tables: Tables, header: Header) -> Header:
    """Migrate the tables from the header's version to the newest.

    Args:
        connection: a connection in a transaction that holds the lock of the index.
        tables: the tables of the index.
        header: as it is stored; of version 0 for an index that is new.

    Returns:
        The header of the newest version.
    """
    if header.format_version == len(MIGRATIONS):
        return header
    for version in MIGRATIONS[header.format_version :]:
        for statement in version:
            connection.execute(tables.sql(statement, bits=sql.Literal(header.bits)))
    header = replace(header, format_version=len(MIGRATIONS))
    tables.set_fact(connection, HEADER, header.to_json())
    return header


def _check_encoding(server: Server, connection: Connection) -> None:
    found = connection.execute("SELECT current_setting('server_encoding')").fetchone()
    assert found is not None
    if found[0] != "UTF8":
        raise ServerError(
            f"the database of {server.name} is encoded as {found[0]}: keys are any Unicode text; create one with "
            "createdb --encoding=UTF8 --template=template0"
        )


def _columns(connection: Connection, table: str) -> dict[str, str]:
    rows = connection.execute(_COLUMNS, [table]).fetchall()
    return {name: kind.rpartition(".")[2].partition("(")[0] for name, kind in rows}


def _check_shapes(server: Server, tables: Tables, columns: dict[str, dict[str, str]]) -> None:
    for table, required in _SHAPES.items():
        if not required.items() <= columns[table].items():  # further columns do no harm
            raise _another_shape(server, f"{tables.name}_{table}")


def _another_shape(server: Server, table: str) -> FolderError:
    return FolderError(
        f"the table {table} of {server.name} is missing or was not created by adsh: name another with ?table=NAME"
    )


def _check_extension(server: Server, *, create: bool) -> None:
    with server.plain() as connection:
        if create:
            _create_extension(server, connection)
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


def _create_extension(server: Server, connection: Connection) -> None:
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
            f"{server.name} has no pgvector ({server.reason(problem)}): install it on the server (the package "
            "postgresql-NN-pgvector, or github.com/pgvector/pgvector), then repeat this"
        ) from None
