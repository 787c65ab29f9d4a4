"""An index in PostgreSQL with pgvector: `postgresql://user:password@host:5432/database?table=photos`.

Several indexes share a database under names of their own (`table`, `adsh` where none is given). An add is one
transaction: durable when it returns, and nothing of it where it fails. What the tables are: see `postgres_schema`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import errors, sql

from ..errors import InputError
from ..hamming.bits import Codes, as_octets
from ..hamming.small_vectors import NONE, Projection
from .about import load_projection, save_projection
from .address import check_address, check_name, options_of, shown
from .base import Index, Ranking
from .checks import check_given, check_items, check_keys, check_number, check_queries
from .matches import Item, Matches, StoredVectors
from .postgres_schema import Tables, found_tables
from .postgres_search import Search, as_halfvec, from_bits, to_bits
from .postgres_server import Connection, Server
from .rows import Rows, no_vectors
from .shortening import Shortening
from .texts import Texts
from .where import Where

LONGEST_KEY = 2600  # bytes: what an index of PostgreSQL takes
_AT_A_TIME = 10_000  # keys looked up in one statement

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
_DIFFER = """
SELECT coalesce(known.code, counted.code)::text, coalesce(known.items, 0), coalesce(counted.items, 0)
FROM {codes} AS known FULL JOIN (SELECT code, count(*) AS items FROM {items} GROUP BY code) AS counted USING (code)
WHERE known.items IS DISTINCT FROM counted.items LIMIT 10
"""
_COLUMNS = "SELECT place, key, code::text, metadata::text, vector::real[] FROM {items} "
_SIZE = """
SELECT sum(pg_total_relation_size(to_regclass(name))), current_setting('server_version'),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector')
FROM unnest(%s::text[]) AS name
"""


class PostgresIndex(Index):
    """An index in the tables of a PostgreSQL database."""

    def __init__(self, address: str, bits: int | None, model: str | None, timeout: float) -> None:
        bare, options = options_of(check_address(address), ("table",))
        self._tables = Tables(check_name("table", options.get("table", "adsh")))
        self.location = shown(address)
        self._server = Server(bare, self.location, timeout)
        try:
            self._about = found_tables(self._server, self._tables, bits, model)
        except BaseException:
            self._server.close()
            raise
        self.bits = self._about.bits
        self._shorten = Shortening(self.location)

    @property
    def model(self) -> str | None:  # type: ignore[override]  # read only, where the interface allows more
        """The fingerprint of the model that made the codes, where it was given."""
        return self._about.model

    @property
    def projection(self) -> Projection | None:
        """How features are shortened, where vectors were ever given."""
        with self._server.reading() as connection:
            return load_projection(self._tables.fact(connection, "projection"))

    def adopt(self, projection: Projection) -> None:
        """Shortens features as another index does."""
        with self._writing() as connection:
            if self._tables.fact(connection, "projection") is None:
                self._tables.set_fact(connection, "projection", save_projection(projection))

    def add(
        self, keys: Sequence[str], codes: Any, metadata: Sequence[Any] | None = None, *, vectors: Any = None
    ) -> int:
        """Stores items in one transaction, and gives how many keys are new: see `Index.add`."""
        encoded, packed, texts = check_items(keys, codes, metadata, self.bits, LONGEST_KEY)
        if not encoded:
            return 0
        tables = self._tables
        with self._writing() as connection:
            small = None
            if vectors is not None:
                small = self._shorten(
                    vectors,
                    len(encoded),
                    lambda: tables.fact(connection, "projection"),
                    lambda value: tables.set_fact(connection, "projection", value),
                )
            self._copy(connection, encoded, packed, texts, small)
            replaced = sum(int(row[0]) for row in connection.execute(tables.sql(_REPLACED)))
            connection.execute(tables.sql(_INSERT))
            connection.execute(tables.sql(_COUNT))
            if replaced:
                connection.execute(tables.sql(_FORGET))
        return len(encoded) - replaced

    def _copy(
        self,
        connection: Connection,
        keys: list[bytes],
        codes: Codes,
        texts: list[bytes] | None,
        small: NDArray[np.int8] | None,
    ) -> None:
        """Puts a batch into a table of this session: one stream for all of it."""
        tables = self._tables
        connection.execute(tables.sql(_NEW, bits=sql.Literal(self.bits)))
        metadata: list[str | None] = [None] * len(keys) if texts is None else [t.decode() or None for t in texts]
        vectors: list[str | None] = [None] * len(keys)
        if small is not None:
            vectors = [None if row[0] == NONE else as_halfvec(row) for row in small]
        try:
            with connection.cursor().copy(tables.sql("COPY {new} FROM STDIN")) as copy:
                columns = (keys, to_bits(codes, self.bits), metadata, vectors)
                for number, (key, *rest) in enumerate(zip(*columns, strict=True), 1):
                    copy.write_row((number, key.decode(), *rest))
        except (errors.UntranslatableCharacter, errors.InvalidTextRepresentation):
            raise InputError(
                "metadata holds a text with a NUL or half a character (\\u0000, \\ud800): PostgreSQL stores neither; "
                "leave them out"
            ) from None
        connection.execute(tables.sql("ANALYZE {new}"))

    def remove(self, keys: Sequence[str]) -> int:
        """Takes items out, and gives how many of the keys were there."""
        texts = [key.decode() for key in check_keys(keys)]
        removed = 0
        with self._writing() as connection:
            for start in range(0, len(texts), _AT_A_TIME):
                gone = connection.execute(self._tables.sql(_DELETE), [texts[start : start + _AT_A_TIME]])
                removed += sum(row[0] for row in gone)
            if removed:
                connection.execute(self._tables.sql(_FORGET))
        return removed

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
        queries = check_queries(codes, ranking, self.bits)
        k, offset = check_number("k", k, 1), check_number("offset", offset, 0)
        condition = None if where is None else Where(where)
        if rerank:
            check_given(vectors)
        if not queries:
            return []
        texts = to_bits(np.concatenate([as_octets(query.words[None], self.bits) for query in queries]), self.bits)
        with self._server.reading() as connection:
            small: Sequence[NDArray[np.int8] | None] = [None] * len(queries)
            if rerank:
                small = list(self._shorten(vectors, len(queries), lambda: self._tables.fact(connection, "projection")))
            search = Search(connection, self._tables, self.bits, condition)
            each = zip(queries, texts, small, strict=True)
            return [search.top(query, text, k, offset, vector) for query, text, vector in each]

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
        queries = check_queries(codes, "hamming", self.bits)
        radius, offset = check_number("radius", radius, 0), check_number("offset", offset, 0)
        limit = None if limit is None else check_number("limit", limit, 1)
        condition = None if where is None else Where(where)
        texts = [to_bits(as_octets(query.words[None], self.bits), self.bits)[0] for query in queries]
        with self._server.reading() as connection:
            search = Search(connection, self._tables, self.bits, condition)
            return [search.within(text, radius, offset, limit) for text in texts]

    def get(self, keys: Sequence[str]) -> list[Item | None]:
        """The items of these keys as they are stored; None for a key that is not there."""
        rows = self._rows_of([key.decode() for key in check_keys(keys)])
        found = {item.key: item for part in rows for item in part.items()}
        return [found.get(key) for key in keys]

    def stored_vectors(self, keys: Sequence[str]) -> StoredVectors | None:
        """The vectors of items that are there, to search from them; None where one has none."""
        wanted = [key.decode() for key in check_keys(keys)]
        by_key: dict[str, NDArray[np.int8]] = {}
        for part in self._rows_of(wanted):
            if part.vectors is None or (part.vectors[:, 0] == NONE).any():
                return None
            by_key |= zip(part.keys.run(0, len(part)), part.vectors, strict=True)
        if not wanted or len(by_key) < len(wanted):
            return None
        return StoredVectors(np.stack([by_key[key] for key in wanted]))

    def note(self, name: str, text: str) -> None:
        """Keeps a short text beside the items."""
        with self._writing() as connection:
            self._tables.set_fact(connection, f"note:{name}", text.encode())

    def noted(self, name: str) -> str | None:
        """The text kept under this name."""
        with self._server.reading() as connection:
            stored = self._tables.fact(connection, f"note:{name}")
        return None if stored is None else stored.decode()

    def batches(self, size: int = 1 << 14) -> Iterator[Rows]:
        """All items as columns, in the order of insertion, so many at a time; no transaction is left open between."""
        after = -1
        while True:
            with self._server.reading() as connection:
                statement = self._tables.sql(_COLUMNS + "WHERE place > %s ORDER BY place LIMIT %s")
                found = connection.execute(statement, [after, size]).fetchall()
            if not found:
                return
            after = found[-1][0]
            yield self._as_rows(found)

    def compact(self) -> None:
        """Frees what changes have left, and lets the server see what the tables hold."""
        with self._server.plain() as connection:
            for table in ("{items}", "{codes}", "{facts}"):
                connection.execute(self._tables.sql("VACUUM (ANALYZE) ") + self._tables.sql(table))

    def verify(self) -> list[str]:
        """Reads every item and gives what is wrong: nothing, where each code has as many items as were counted."""
        with self._server.reading() as connection:
            differing = connection.execute(self._tables.sql(_DIFFER)).fetchall()
            twice = connection.execute(
                self._tables.sql("SELECT count(*) - count(DISTINCT place) FROM {items}")
            ).fetchone()
        problems = [f"code {code[:64]} has {there} items, and {said} were counted" for code, said, there in differing]
        if twice and twice[0]:
            problems.append(f"{twice[0]} items have a place that another has")
        return problems

    def info(self) -> dict[str, Any]:
        """What the index holds and how it is searched."""
        tables = self._tables
        names = [f"{tables.name}_{table}" for table in ("items", "codes", "facts")]
        with self._server.reading() as connection:
            distinct = connection.execute(tables.sql("SELECT count(*) FROM {codes}")).fetchone()
            size = connection.execute(_SIZE, [names]).fetchone()
            projection = load_projection(tables.fact(connection, "projection"))
            items = tables.count(connection)
        assert distinct is not None
        assert size is not None
        return {
            "path": self.location,
            "items": items,
            "bits": self.bits,
            "model": self.model,
            "format_version": self._about.format_version,
            "search": "the distinct codes (pgvector)",
            "distinct_codes": distinct[0],
            "vector_dimensions": 0 if projection is None else projection.components.shape[1],
            "bytes": int(size[0]),
            "server": f"PostgreSQL {size[1]}, pgvector {size[2]}",
        }

    def __len__(self) -> int:
        with self._server.reading() as connection:
            return self._tables.count(connection)

    def close(self) -> None:
        """Ends the use of this handle; what was added stays."""
        self._server.close()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._server.writing() as connection:
            self._tables.lock(connection)
            yield connection

    def _rows_of(self, keys: list[str]) -> list[Rows]:
        parts = []
        with self._server.reading() as connection:
            for start in range(0, len(keys), _AT_A_TIME):
                statement = self._tables.sql(_COLUMNS + "WHERE key = ANY(%s::text[])")
                found = connection.execute(statement, [keys[start : start + _AT_A_TIME]]).fetchall()
                if found:
                    parts.append(self._as_rows(found))
        return parts

    def _as_rows(self, found: list[tuple[Any, ...]]) -> Rows:
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
            from_bits(list(codes), self.bits),
            Texts.of([key.encode() for key in keys]),
            Texts.of(texts) if any(texts) else None,
            small,
        )
