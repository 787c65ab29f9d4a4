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

from ...hamming.bits import as_octets
from ...hamming.small_vectors import NONE, Projection
from ...utils.urls import check_address, check_name, options_of, shown
from ..base import Index, Ranking
from ..filters import Where
from ..header import load_projection, save_projection
from ..matches import Item, Matches, StoredVectors
from ..rows import Rows
from ..validation import check_given, check_items, check_keys, check_number, check_queries
from ..vectors import Shortening
from .rows import Batch, put, rows_after, rows_of, rows_spread, take_out
from .schema import Tables, found_tables, may_be_distributed
from .search import Search, to_bits
from .server import Connection, Server

LONGEST_KEY = 2600  # bytes: what an index of PostgreSQL takes
_DIFFER = """
SELECT coalesce(known.code, counted.code)::text, coalesce(known.items, 0), coalesce(counted.items, 0)
FROM {codes} AS known FULL JOIN (SELECT code, count(*) AS items FROM {items} GROUP BY code) AS counted USING (code)
WHERE known.items IS DISTINCT FROM counted.items LIMIT 10
"""
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
            self._distributed = may_be_distributed(self._server)
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
            return put(connection, tables, self.bits, Batch(encoded, packed, texts, small))

    def remove(self, keys: Sequence[str]) -> int:
        """Takes items out, and gives how many of the keys were there."""
        texts = [key.decode() for key in check_keys(keys)]
        with self._writing() as connection:
            return take_out(connection, self._tables, texts)

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
            search = Search(connection, self._tables, self.bits, condition, self._distributed)
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
            search = Search(connection, self._tables, self.bits, condition, self._distributed)
            return [search.within(text, radius, offset, limit) for text in texts]

    def get(self, keys: Sequence[str]) -> list[Item | None]:
        """The items of these keys as they are stored; None for a key that is not there."""
        found = {item.key: item for part in self._rows_of(keys) for item in part.items()}
        return [found.get(key) for key in keys]

    def stored_vectors(self, keys: Sequence[str]) -> StoredVectors | None:
        """The vectors of items that are there, to search from them; None where one has none."""
        by_key: dict[str, NDArray[np.int8]] = {}
        for part in self._rows_of(keys):
            if part.vectors is None or (part.vectors[:, 0] == NONE).any():
                return None
            by_key |= zip(part.keys.run(0, len(part)), part.vectors, strict=True)
        if not by_key or len(by_key) < len(keys):
            return None
        return StoredVectors(np.stack([by_key[key] for key in keys]))

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
                rows = rows_after(connection, self._tables, self.bits, after, size)
            if rows is None:
                return
            after = int(rows.places[-1])
            yield rows

    def sample(self, count: int) -> list[Item]:
        """At most so many items, spread over all codes."""
        with self._server.reading() as connection:
            rows = rows_spread(connection, self._tables, self.bits, check_number("count", count, 1))
        return [] if rows is None else list(rows.items())

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

    def _rows_of(self, keys: Sequence[str]) -> list[Rows]:
        with self._server.reading() as connection:
            return rows_of(connection, self._tables, self.bits, [key.decode() for key in check_keys(keys)])
