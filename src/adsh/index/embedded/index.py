"""The default index: a folder on this machine, with one writer at a time and any number of readers.

    index.db          the truth: keys, codes, metadata and vectors in SQLite
    snapshot-N.bin    the same, laid out for searching and mapped into memory
    commits           how many commits were made

What was written after the snapshot is read into memory when it is first searched for. A handle sees the commits of
other processes with its next call. Files of up to 4 MiB are checked in full when opened, larger ones by `verify`;
whatever is read is checked always.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import AdshError, AdshWarning
from ...hamming.bits import as_words, number_rows
from ...hamming.radius_lookup import largest_radius
from ...hamming.scan import faiss_module
from ...hamming.small_vectors import NONE, Projection
from ..base import Index, Ranking
from ..filters import Where
from ..header import load_projection, save_projection
from ..matches import Item, Matches, StoredVectors
from ..rows import Rows
from ..texts import Texts
from ..validation import check_given, check_items, check_keys, check_number, check_queries
from ..vectors import Shortening
from .opening import found_index, open_store
from .segments import Parts
from .snapshot import SnapshotDamaged, read_snapshot
from .store import State, Store
from .view import View

_CHECKED_IN_FULL = 4 << 20  # bytes
_REWRITE_FROM, _REWRITE_PART = 50_000, 4  # a new snapshot when this many, and a quarter of all, are not in it
_CLOSE_FROM, _CLOSE_PART = 1_000, 50  # the same when a handle that wrote is closed
_DIFFER = "the snapshot and the database differ: open the index again, and it is made anew"


class EmbeddedIndex(Index):
    """An index in a folder."""

    def __init__(self, folder: Path, bits: int | None, model: str | None, timeout: float) -> None:
        self.folder = folder
        self.location = str(folder)
        self._wrote = False
        self._writing = threading.Lock()
        self._store = open_store(folder, bits, timeout)  # writes
        reader = None
        try:
            self._about = found_index(self._store, bits, model)
            self.bits = self._about.bits
            self._shorten = Shortening(str(folder))
            reader = Store(folder, timeout)
            self._view = View(reader, self.bits)
            self._view.parts()
            if self._view.rebuilt:
                self._view.try_to_compact(self._store)
            if self._store.bytes_on_disk() <= _CHECKED_IN_FULL:
                self._check()
        except BaseException:
            self._store.close()
            if reader is not None:
                reader.close()
            raise

    def _check(self) -> None:
        """Reads everything; what is only in the snapshot is put right, for the database is the truth."""
        problems = self.verify()
        if problems == [_DIFFER]:
            warnings.warn(
                f"{self.folder}: the snapshot is made again, for it is not what the database holds", AdshWarning, 4
            )
            self._view.rebuild(self._store)
            problems = self.verify()
        if problems:
            raise self._store.damaged(problems[0])

    @property
    def model(self) -> str | None:  # type: ignore[override]  # read only, where the interface allows more
        """The fingerprint of the model that made the codes, where it was given."""
        return self._about.model

    def add(
        self, keys: Sequence[str], codes: Any, metadata: Sequence[Any] | None = None, *, vectors: Any = None
    ) -> int:
        """Stores items, and gives how many keys are new: see `Index.add`."""
        encoded, packed, texts = check_items(keys, codes, metadata, self.bits)
        if not encoded:
            return 0
        with self._writing:
            with self._changing() as (store, state):
                small = None
                if vectors is not None:
                    small = self._shorten(vectors, len(encoded), self._projection(store), self._keep_projection(store))
                numbers, old, checks = store.items_of(encoded, self.bits)
                first = state.last + 1 + len(numbers)
                places = np.arange(first, first + len(encoded), dtype=np.int64)
                if old is not None:
                    store.remove(state.last + 1, numbers, old)
                    known = dict(zip(old.keys.at(slice(0, len(old))), old.places.tolist(), strict=True))
                    for at, key in enumerate(encoded):
                        places[at] = known.get(key.decode(), places[at])
                column = None if texts is None else Texts.of(texts)
                added = store.insert(first, Rows(places, packed, Texts.of(encoded), column, small))
                new = len(encoded) - len(numbers)
                state = state.after(new, added - int(checks.sum(dtype=np.uint64)), len(numbers) + len(encoded))
                store.set_state(state)
            self._committed(state)
        return new

    def remove(self, keys: Sequence[str]) -> int:
        """Takes items out, and gives how many of the keys were there."""
        encoded = check_keys(keys)
        with self._writing:
            with self._changing() as (store, state):
                numbers, old, checks = store.items_of(encoded, self.bits)
                if old is None:
                    return 0
                store.remove(state.last + 1, numbers, old)
                state = state.after(-len(old), -int(checks.sum(dtype=np.uint64)), len(old))
                store.set_state(state)
            self._committed(state)
        return len(old)

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
        parts = self._view.parts()
        small = None
        if rerank:
            check_given(vectors)
            with self._view.lock, self._view.store.reading():
                small = self._shorten(vectors, len(queries), self._projection(self._view.store))
        return parts.top(queries, k, offset, condition, small)

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
        parts = self._view.parts()
        return [parts.within(query, radius, offset, limit, condition) for query in queries]

    def __len__(self) -> int:
        return len(self._view.parts())

    def rows(self) -> Rows | None:
        """All items as columns, in the order of insertion; None where there are none."""
        return self._view.parts().rows()

    def get(self, keys: Sequence[str]) -> list[Item | None]:
        """The items of these keys as they are stored; None for a key that is not there."""
        encoded = check_keys(keys)
        with self._view.lock, self._view.store.reading():
            rows = self._view.store.items_of(encoded, self.bits)[1]
        found = {} if rows is None else {item.key: item for item in rows.items()}
        return [found.get(key) for key in keys]

    def note(self, name: str, text: str) -> None:
        """Keeps a short text beside the items."""
        with self._writing, self._changing() as (store, _):
            store.set_fact(f"note:{name}", text.encode())

    def noted(self, name: str) -> str | None:
        """The text kept under this name."""
        with self._view.lock, self._view.store.reading():
            stored = self._view.store.fact(f"note:{name}")
        return None if stored is None else stored.decode()

    def batches(self, size: int = 1 << 14) -> Iterator[Rows]:
        """All items as columns, in the order of insertion, so many at a time."""
        rows = self.rows()
        for start in range(0, 0 if rows is None else len(rows), size):
            assert rows is not None
            yield rows.take(np.arange(start, min(start + size, len(rows))))

    def sample(self, count: int) -> list[Item]:
        """At most so many items, spread over all codes."""
        return self._view.parts().sample(check_number("count", count, 1))

    def stored_vectors(self, keys: Sequence[str]) -> StoredVectors | None:
        """The vectors of items that are there, to search from them; None where one has none."""
        encoded = check_keys(keys)
        with self._view.lock, self._view.store.reading():
            rows = self._view.store.items_of(encoded, self.bits)[1]
        if rows is None or rows.vectors is None or len(rows) < len(encoded) or (rows.vectors[:, 0] == NONE).any():
            return None
        at = {key: position for position, key in enumerate(rows.keys.run(0, len(rows)))}
        return StoredVectors(rows.vectors[[at[key] for key in keys]])

    @property
    def projection(self) -> Projection | None:
        """How features are shortened, where vectors were ever given."""
        with self._view.lock, self._view.store.reading():
            return load_projection(self._view.store.fact("projection"))

    def adopt(self, projection: Projection) -> None:
        """Shortens features as another index does."""
        with self._writing, self._changing() as (store, _):
            if store.fact("projection") is None:
                store.set_fact("projection", save_projection(projection))

    def compact(self) -> None:
        """Writes a new snapshot of everything, which makes opening and searching as fast as they can be."""
        with self._writing:
            self._view.compact(self._store)

    def verify(self) -> list[str]:
        """Reads everything and gives what is wrong with it: nothing, where all is well."""
        view = self._view
        try:
            problems = [f"SQLite: {told}" for told in view.store.problems()]
            with view.lock:
                while True:
                    parts, known = view.now()
                    with view.store.reading() as state:
                        rows, total = view.store.items(0, self.bits)
                    if state.commits == known.commits:
                        break  # else another process committed in between
            count = 0 if rows is None else len(rows)
            if count != state.items or total != state.sum:
                problems.append(f"{count} items are there and {state.items} were stored")
            self._check_snapshot(state)
            held = parts.rows()
            if (rows is None) != (held is None) or (rows is not None and held is not None and not rows.equals(held)):
                problems.append(_DIFFER)
            return problems
        except (AdshError, SnapshotDamaged) as problem:
            return [str(problem)]

    def _check_snapshot(self, state: State) -> None:
        """Reads the state's snapshot; one that another process has replaced since need not be there any more."""
        if not state.snapshot:
            return
        try:
            read_snapshot(self.folder / state.snapshot)
        except SnapshotDamaged:
            with self._view.lock, self._view.store.reading() as later:
                if later.snapshot == state.snapshot:
                    raise

    def info(self) -> dict[str, Any]:
        """What the index holds and how it is searched."""
        with self._view.lock:
            parts, state = self._view.now()
            largest = max(parts.segments, key=len, default=None)
            projection = self.projection
            faiss = "faiss" if faiss_module() is not None else "numpy"
            buckets = largest is not None and largest.layout.name == "buckets"
            radius = -1 if largest is None else largest_radius(self.bits, len(largest.layout.words))
            return {
                "path": str(self.folder),
                "items": len(parts),
                "bits": self.bits,
                "model": self.model,
                "format_version": self._about.format_version,
                "search": "none" if largest is None else "buckets" if buckets else f"scan ({faiss})",
                "radius_looked_up": None if radius < 0 else radius,  # None: no codes are looked up, all are compared
                "distinct_codes": number_rows(_words(parts))[0] if parts.segments else 0,
                "vector_dimensions": 0 if projection is None else projection.components.shape[1],
                "snapshot": state.snapshot or None,
                "items_after_snapshot": sum(map(len, parts.segments[bool(state.snapshot) :])),
                "bytes": self._store.bytes_on_disk() + _size(self.folder / state.snapshot if state.snapshot else None),
            }

    def close(self) -> None:
        """Ends the use of this handle; what was added stays."""
        with self._writing, self._view.lock:
            if self._store.closed:
                return
            if self._wrote:
                self._wrote = False
                self._rewrite_if_due(self._view.now()[1], _CLOSE_FROM, _CLOSE_PART)
            self._view.store.close()
            self._store.close()

    @staticmethod
    def _projection(store: Store) -> Callable[[], bytes | None]:
        return lambda: store.fact("projection")

    @staticmethod
    def _keep_projection(store: Store) -> Callable[[bytes], None]:
        return lambda value: store.set_fact("projection", value)

    @contextmanager
    def _changing(self) -> Iterator[tuple[Store, State]]:
        with self._store.writing():
            yield self._store, self._store.state()

    def _committed(self, state: State) -> None:
        self._store.count_commit(state.commits)
        self._wrote = True
        self._rewrite_if_due(state, _REWRITE_FROM, _REWRITE_PART)

    def _rewrite_if_due(self, state: State, least: int, part: int) -> None:
        """Writes a new snapshot where much is not in the last one."""
        if state.last - state.upto > max(least, state.items // part):
            self._view.try_to_compact(self._store)


def _words(parts: Parts) -> np.ndarray[Any, Any]:
    """The words of all codes there are; of whole segments, each once."""
    if any(segment.gone is not None for segment in parts.segments):
        rows = parts.rows()
        return as_words(np.zeros((0, 1), dtype=np.uint8) if rows is None else rows.codes)
    return np.concatenate([segment.layout.words for segment in parts.segments])


def _size(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.exists() else 0
