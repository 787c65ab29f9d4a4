"""An index in PostgreSQL with pgvector: `postgresql://user:password@host:5432/database?table=photos`.

Several indexes share a database under names of their own (`table`, by default `adsh`). An add is one transaction:
durable when it returns, and undone if it fails. The tables are described in `schema`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...hamming.bits import as_octets
from ...hamming.query import Query
from ...models.fingerprint import ModelId
from ...utils.urls import check_address, check_name, options_of, shown
from ..base import Index
from ..collection import Change, Page, changed_items, new_marks
from ..filters import Filter
from ..header import HEADER, PROJECTION, Header, load_projection
from ..matches import Item, Matches
from ..rows import Rows, join, with_changes
from ..validation import Batch, check_number
from ..vector_compressor import VectorCompressor
from .rows import (
    delete_items,
    generations_of,
    insert_items,
    outdated_keys,
    rows_after,
    rows_behind,
    rows_of,
    rows_spread,
)
from .schema import Tables, create_or_open, may_be_distributed, read_header
from .search import Search, to_bits
from .server import Connection, Server

_AT_ONCE = 10_000  # items read at a time to look for those that meet a filter
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
    """An index in the tables of a PostgreSQL database.

    Args:
        address: postgresql://user:password@host:5432/database?table=NAME.
        bits: the length of the codes; None to open an existing index only.
        model: the model that computes the codes; None if it is not known.
        timeout: how many seconds to wait for the server, and for another writer.
    """

    longest_key = 2600  # bytes: the most that an index of PostgreSQL takes

    def __init__(self, address: str, bits: int | None, model: ModelId | None, timeout: float) -> None:
        bare, options = options_of(check_address(address), ("table",))
        self._tables = Tables(check_name("table", options.get("table", "adsh")))
        self.location = shown(address)
        self._server = Server(bare, self.location, timeout)
        try:
            self._header = create_or_open(self._server, self._tables, bits, model)
            self._distributed = may_be_distributed(self._server)
        except BaseException:
            self._server.close()
            raise
        self._compressor = VectorCompressor(self.location)

    def _add(self, batch: Batch, vectors: Any) -> int:
        tables = self._tables
        with self._writing() as connection:
            small = None
            if vectors is not None:
                small = self._compressor.compress(
                    vectors,
                    len(batch.keys),
                    lambda: tables.fact(connection, PROJECTION),
                    lambda value: tables.set_fact(connection, PROJECTION, value),
                )
            return insert_items(connection, tables, self.bits, batch, small)

    def _accept(self, model: ModelId) -> Header:
        tables = self._tables
        with self._writing() as connection:
            header = read_header(self._server, connection, tables)
            changed = header.advanced_to(model, tables.count(connection), self._server.name)
            if changed != header:
                tables.set_fact(connection, HEADER, changed.to_json())
        return changed

    def _outdated(self, generation: int, after: str, count: int) -> list[str]:
        with self._server.reading() as connection:
            return outdated_keys(connection, self._tables, generation, after, count)

    def _networks(self, keys: list[bytes]) -> dict[str, int]:
        with self._server.reading() as connection:
            return generations_of(connection, self._tables, [key.decode() for key in keys])

    def _page(self, cursor: str, count: int, where: Filter | None) -> Page:
        found: list[Item] = []
        while True:
            with self._server.reading() as connection:
                rows = rows_behind(connection, self._tables, self.bits, cursor, count + 1, where)
            items = [] if rows is None else list(rows.items())
            accepted = items if where is None else [item for item in items if where.holds(item.metadata or {})]
            found += accepted
            if len(found) > count:
                return Page(found[:count], found[count - 1].key)
            if len(items) <= count:
                return Page(found, None)
            cursor = items[-1].key

    def _matching_keys(self, where: Filter) -> list[str]:
        keys: list[str] = []
        page = self._page("", _AT_ONCE, where)
        while True:
            keys += [item.key for item in page.items]
            if page.cursor is None:
                return keys
            page = self._page(page.cursor, _AT_ONCE, where)

    def _change(self, keys: list[bytes], change: Change) -> int:
        tables, names = self._tables, [key.decode() for key in keys]
        with self._writing() as connection:
            pieces = rows_of(connection, tables, self.bits, names)
            if not pieces:
                return 0
            old = join(pieces)
            changes = changed_items(list(old.items()), change)
            if not changes:
                return 0
            before = old.take(np.array([number for number, _ in changes], dtype=np.int64))
            rows = with_changes(before, [one for _, one in changes], self.bits)
            changed = before.keys.run(0, len(before))
            marks = generations_of(connection, tables, changed)
            metadata = None if rows.metadata is None else [text.encode() for text in rows.metadata.run(0, len(rows))]
            batch = Batch(
                [key.encode() for key in changed],
                rows.codes,
                metadata,
                new_marks(changes, [marks.get(key) for key in changed]),
            )
            insert_items(connection, tables, self.bits, batch, rows.vectors)
        return len(changed)

    def _remove(self, keys: list[bytes]) -> int:
        with self._writing() as connection:
            return delete_items(connection, self._tables, [key.decode() for key in keys])

    def _search(self, queries: list[Query], k: int, offset: int, where: Filter | None, vectors: Any) -> list[Matches]:
        if not queries:
            return []
        with self._server.reading() as connection:
            small: Sequence[NDArray[np.int8] | None] = [None] * len(queries)
            if vectors is not None:
                load = lambda: self._tables.fact(connection, PROJECTION)  # noqa: E731  # read only if it is not known yet
                small = list(self._compressor.compress(vectors, len(queries), load))
            search = Search(connection, self._tables, self.bits, where, self._distributed)
            each = zip(queries, self._as_bits(queries), small, strict=True)
            return [search.top(query, text, k, offset, vector) for query, text, vector in each]

    def _within(
        self, queries: list[Query], radius: int, offset: int, limit: int | None, where: Filter | None
    ) -> list[Matches]:
        texts = self._as_bits(queries)
        with self._server.reading() as connection:
            search = Search(connection, self._tables, self.bits, where, self._distributed)
            return [search.within(text, radius, offset, limit) for text in texts]

    def _as_bits(self, queries: list[Query]) -> list[str]:
        return [to_bits(as_octets(query.words[None], self.bits), self.bits)[0] for query in queries]

    def _find(self, keys: list[bytes]) -> list[Rows]:
        with self._server.reading() as connection:
            return rows_of(connection, self._tables, self.bits, [key.decode() for key in keys])

    def _fact(self, name: str) -> bytes | None:
        with self._server.reading() as connection:
            return self._tables.fact(connection, name)

    def _set_fact(self, name: str, value: bytes, *, overwrite: bool = True) -> None:
        with self._writing() as connection:
            if overwrite or self._tables.fact(connection, name) is None:
                self._tables.set_fact(connection, name, value)

    def batches(self, size: int = 1 << 14) -> Iterator[Rows]:
        """Yield all items in the order of insertion, at most `size` at a time; no transaction stays open between."""
        after = (-1, "")
        while True:
            with self._server.reading() as connection:
                rows = rows_after(connection, self._tables, self.bits, after, size)
            if rows is None:
                return
            after = (int(rows.insertion_order[-1]), rows.keys.run(len(rows) - 1, len(rows))[0])
            yield rows

    def sample(self, count: int) -> list[Item]:
        """Return at most `count` items, spread over all codes; fewer where their metadata is long."""
        with self._server.reading() as connection:
            rows = rows_spread(connection, self._tables, self.bits, check_number("count", count, 1))
        return [] if rows is None else list(rows.items())

    def compact(self) -> None:
        """Free the space of earlier changes, and update the server's statistics."""
        with self._server.plain() as connection:
            for table in ("{items}", "{codes}", "{facts}"):
                connection.execute(self._tables.sql("VACUUM (ANALYZE) ") + self._tables.sql(table))

    def verify(self) -> list[str]:
        """Read every item and return what is wrong; an empty list if each code has as many items as were counted."""
        with self._server.reading() as connection:
            differing = connection.execute(self._tables.sql(_DIFFER)).fetchall()
            repeated = connection.execute(
                self._tables.sql("SELECT count(*) - count(DISTINCT place) FROM {items}")
            ).fetchone()
        problems = [f"code {code[:64]} has {items} items, and {known} were counted" for code, known, items in differing]
        if repeated and repeated[0]:
            problems.append(f"{repeated[0]} items have the place of another item")
        return problems

    def info(self) -> dict[str, Any]:
        """Return what the index holds and how it is searched."""
        tables = self._tables
        names = [f"{tables.name}_{table}" for table in ("items", "codes", "facts")]
        with self._server.reading() as connection:
            distinct = connection.execute(tables.sql("SELECT count(*) FROM {codes}")).fetchone()
            size = connection.execute(_SIZE, [names]).fetchone()
            projection = load_projection(tables.fact(connection, PROJECTION))
            items = tables.count(connection)
        assert distinct is not None
        assert size is not None
        return {
            "path": self.location,
            "items": items,
            "bits": self.bits,
            "model": self.model,
            "format_version": self._header.format_version,
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
        """Close this handle. What was added stays."""
        self._server.close()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._server.writing() as connection:
            self._tables.lock(connection)
            yield connection
