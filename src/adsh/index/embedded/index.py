"""The default index: a folder on this machine, with one writer at a time and any number of readers.

    index.db          keys, codes, metadata and vectors in SQLite: authoritative
    snapshot-N.bin    the same, laid out for searching and mapped into memory
    commits           how many commits there were

What was written after the snapshot is read into memory by the next search. A handle sees the commits of other
processes with its next call. Files of up to 4 MiB are checked in full when opened, larger ones by `verify`; whatever is
read is always checked.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import AdshError, AdshWarning
from ...hamming.bits import as_words, number_rows
from ...hamming.query import Query
from ...hamming.radius_lookup import largest_radius
from ...hamming.scan import faiss_module
from ...models.fingerprint import ModelId
from ..base import Index
from ..collection import Change, Page, changed_items, new_marks
from ..deadline import check_deadline
from ..filters import Filter
from ..header import HEADER, PROJECTION, Header
from ..matches import Item, Matches
from ..rows import Rows, with_changes
from ..text_column import TextColumn
from ..validation import Batch, check_number
from ..vector_compressor import VectorCompressor
from .database import DATABASE, State
from .opening import create_or_open, open_store, read_header
from .segments import Segments
from .snapshot import SnapshotDamaged, read_snapshot
from .store import Store
from .view import View

_CHECKED_IN_FULL = 4 << 20  # bytes
# A new snapshot is written when this many items, and this fraction of all, are not in the last one:
_REWRITE_FROM, _REWRITE_FRACTION = 50_000, 4  # after a commit
_CLOSE_FROM, _CLOSE_FRACTION = 1_000, 50  # when a handle that wrote is closed
_LISTED = 1024  # items read at a time for a page
_DIFFER = "the snapshot and the database differ: open the index again, and the snapshot is rebuilt"


class EmbeddedIndex(Index):
    """An index in a folder.

    Args:
        folder: where it is, or is to be created.
        bits: the length of the codes; None to open an existing index only.
        model: the model that computes the codes; None if it is not known.
        timeout: how many seconds a write waits for another process's.
    """

    folder: Path

    def __init__(self, folder: Path, bits: int | None, model: ModelId | None, timeout: float) -> None:
        self.folder = folder
        self.location = str(folder)
        self._has_written = False
        self._writing = threading.Lock()
        self._store = open_store(folder, bits, timeout)  # writes
        reader = None
        try:
            self._header = create_or_open(self._store, bits, model)
            self._compressor = VectorCompressor(str(folder))
            reader = Store(folder, timeout)
            self._view = View(reader, self.bits)
            self._view.segments()
            if self._view.rebuilt and not self._store.read_only:
                self._view.try_to_compact(self._store)
            if self._store.bytes_on_disk() <= _CHECKED_IN_FULL:
                self._check()
        except BaseException:
            self._store.close()
            if reader is not None:
                reader.close()
            raise

    def _check(self) -> None:
        """Read everything and raise if it is damaged; a wrong snapshot is rebuilt from the database."""
        problems = self.verify()
        if problems == [_DIFFER]:
            warnings.warn(f"{self.folder}: the snapshot differs from the database and is written again", AdshWarning, 4)
            self._view.rebuild(self._store)
            problems = [one for one in self.verify() if not (self._store.read_only and one == _DIFFER)]
        if problems:
            raise self._store.damaged(problems[0])

    def _add(self, batch: Batch, vectors: Any) -> int:
        keys, count = batch.keys, len(batch.keys)
        with self._writing:
            with self._changing() as (store, state):
                small = None
                if vectors is not None:
                    small = self._compressor.compress(
                        vectors,
                        count,
                        lambda: store.fact(PROJECTION),
                        lambda value: store.set_fact(PROJECTION, value),
                    )
                old = store.items_of(keys, self.bits)
                first = state.last + 1 + len(old.numbers)
                insertion_order = np.arange(first, first + count, dtype=np.int64)
                if old.rows is not None:
                    store.remove(state.last + 1, old.numbers, old.rows)
                    known = dict(
                        zip(old.rows.keys.run(0, len(old.rows)), old.rows.insertion_order.tolist(), strict=True)
                    )
                    for at, key in enumerate(keys):
                        insertion_order[at] = known.get(key.decode(), insertion_order[at])
                metadata = None if batch.metadata is None else TextColumn.of(batch.metadata)
                added = store.insert(first, Rows(insertion_order, batch.codes, TextColumn.of(keys), metadata, small))
                store.mark(first, batch.by_network)
                new = count - len(old.numbers)
                state = state.after(new, added - old.checksum, len(old.numbers) + count)
                store.set_state(state)
            self._committed(state)
        return new

    def _accept(self, model: ModelId) -> Header:
        with self._writing:
            with self._reading() as reader:
                header = read_header(reader)
            if header.model == model.fingerprint:
                return header
            with self._changing() as (store, state):
                header = read_header(store).advanced_to(model, state.items, self.folder)
                store.set_fact(HEADER, header.to_json())
        return header

    def _outdated(self, generation: int, after: str, count: int) -> list[str]:
        with self._reading() as store:
            return store.outdated(generation, after, count)

    def _networks(self, keys: list[bytes]) -> dict[str, int]:
        with self._reading() as store:
            return store.networks(keys)

    def _page(self, cursor: str, count: int, where: Filter | None) -> Page:
        found: list[Item] = []
        while True:
            check_deadline()
            with self._reading() as store:
                rows = store.items_behind(cursor, max(count, _LISTED), self.bits)
            items = [] if rows is None else list(rows.items())
            for number, item in enumerate(items):
                if where is None or where.holds(item.metadata or {}):
                    found.append(item)
                    if len(found) == count:
                        is_last = number == len(items) - 1 and len(items) < max(count, _LISTED)
                        return Page(found, None if is_last else item.key)
            if len(items) < max(count, _LISTED):
                return Page(found, None)
            cursor = items[-1].key

    def _matching_keys(self, where: Filter) -> list[str]:
        return [key for segment in self._view.segments().segments for key in segment.matching(where)]

    def _change(self, keys: list[bytes], change: Change) -> int:
        with self._writing:
            with self._changing() as (store, state):
                old = store.items_of(keys, self.bits)
                changes = [] if old.rows is None else changed_items(list(old.rows.items()), change)
                if old.rows is None or not changes:
                    return 0
                at = np.array([number for number, _ in changes], dtype=np.int64)
                before = old.rows.take(at)
                rows = with_changes(before, [one for _, one in changes], self.bits)
                names = before.keys.run(0, len(before))
                marks = store.networks([name.encode() for name in names])
                store.remove(state.last + 1, old.numbers[at], before)
                first = state.last + 1 + len(at)
                added = store.insert(first, rows)
                generations = new_marks(changes, [marks.get(name) for name in names])
                store.mark(first, [(row, mark) for row, mark in enumerate(generations) if mark is not None])
                removed = int(old.checks[at].sum(dtype=np.uint64))
                state = state.after(0, added - removed, 2 * len(at))
                store.set_state(state)
            self._committed(state)
        return len(at)

    def _remove(self, keys: list[bytes]) -> int:
        with self._writing:
            with self._changing() as (store, state):
                old = store.items_of(keys, self.bits)
                if old.rows is None:
                    return 0
                removed = len(old.rows)
                store.remove(state.last + 1, old.numbers, old.rows)
                state = state.after(-removed, -old.checksum, removed)
                store.set_state(state)
            self._committed(state)
        return removed

    def _search(self, queries: list[Query], k: int, offset: int, where: Filter | None, vectors: Any) -> list[Matches]:
        segments = self._view.segments()
        small = None
        if vectors is not None:
            with self._reading() as store:
                small = self._compressor.compress(vectors, len(queries), lambda: store.fact(PROJECTION))
        return segments.top(queries, k, offset, where, small)

    def _within(
        self, queries: list[Query], radius: int, offset: int, limit: int | None, where: Filter | None
    ) -> list[Matches]:
        segments = self._view.segments()
        return [segments.within(query, radius, offset, limit, where) for query in queries]

    def _find(self, keys: list[bytes]) -> list[Rows]:
        with self._reading() as store:
            rows = store.items_of(keys, self.bits).rows
        return [] if rows is None else [rows]

    def _fact(self, name: str) -> bytes | None:
        with self._reading() as store:
            return store.fact(name)

    def _set_fact(self, name: str, value: bytes, *, overwrite: bool = True) -> None:
        with self._writing, self._changing() as (store, _):
            if overwrite or store.fact(name) is None:
                store.set_fact(name, value)

    def __len__(self) -> int:
        return len(self._view.segments())

    def rows(self) -> Rows | None:
        """Return all items in the order of insertion; None if there are none."""
        return self._view.segments().rows()

    def batches(self, size: int = 1 << 14) -> Iterator[Rows]:
        """Yield all items in the order of insertion, at most `size` at a time."""
        rows = self.rows()
        for start in range(0, 0 if rows is None else len(rows), size):
            assert rows is not None
            yield rows.take(np.arange(start, min(start + size, len(rows))))

    def sample(self, count: int) -> list[Item]:
        """Return at most `count` items, spread over all codes; fewer where their metadata is long."""
        return self._view.segments().sample(check_number("count", count, 1))

    def compact(self) -> None:
        """Write a new snapshot of everything, so that opening and searching are as fast as they can be."""
        with self._writing:
            self._view.compact(self._store)

    def verify(self) -> list[str]:
        """Read everything and return what is wrong with it; an empty list if nothing is."""
        view = self._view
        try:
            problems = [f"SQLite: {line}" for line in view.store.problems()]
            with view.lock:
                while True:
                    segments, known = view.now()
                    with view.store.reading() as state:
                        rows, total = view.store.items(0, self.bits)
                    if state.commits == known.commits:
                        break  # else another process committed in between
            count = 0 if rows is None else len(rows)
            if count != state.items or total != state.sum:
                problems.append(f"{count} items are there and {state.items} were stored")
            self._check_snapshot(state)
            searched = segments.rows()
            same = rows is searched if rows is None or searched is None else rows.equals(searched)
            if not same:
                problems.append(_DIFFER)
            return problems
        except (AdshError, SnapshotDamaged) as problem:
            return [str(problem)]

    def _check_snapshot(self, state: State) -> None:
        """Read the state's snapshot; raise if it is damaged, unless another process has replaced it since."""
        if not state.snapshot:
            return
        try:
            read_snapshot(self.folder / state.snapshot)
        except SnapshotDamaged:
            with self._view.lock, self._view.store.reading() as later:
                if later.snapshot == state.snapshot:
                    raise

    def info(self) -> dict[str, Any]:
        """Return what the index holds and how it is searched."""
        with self._view.lock:
            segments, state = self._view.now()
            largest = max(segments.segments, key=len, default=None)
            projection = self.projection
            faiss = "faiss" if faiss_module() is not None else "numpy"
            buckets = largest is not None and largest.layout.name == "buckets"
            radius = -1 if largest is None else largest_radius(self.bits, len(largest.layout.words))
            return {
                "path": str(self.folder),
                "items": len(segments),
                "bits": self.bits,
                "model": self.model,
                "format_version": self._header.format_version,
                "search": "none" if largest is None else "buckets" if buckets else f"scan ({faiss})",
                "radius_looked_up": None if radius < 0 else radius,  # None: no codes are looked up, all are compared
                "distinct_codes": number_rows(_words(segments))[0] if segments.segments else 0,
                "vector_dimensions": 0 if projection is None else projection.components.shape[1],
                "snapshot": state.snapshot or None,
                "items_after_snapshot": sum(map(len, segments.segments[bool(state.snapshot) :])),
                "bytes": self._store.bytes_on_disk() + _size(self.folder / state.snapshot if state.snapshot else None),
            }

    def storage_id(self) -> tuple[int, int]:
        """Return the device and inode of the database, (0, 0) if it was deleted."""
        try:
            found = (self.folder / DATABASE).stat()
        except OSError:
            return (0, 0)
        return found.st_dev, found.st_ino

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written to its folder: it can be searched, but not changed."""
        return self._store.read_only

    def close(self) -> None:
        """Close this handle. What was added stays."""
        with self._writing, self._view.lock:
            if self._store.closed:
                return
            if self._has_written:
                self._has_written = False
                self._rewrite_if_due(self._view.now()[1], _CLOSE_FROM, _CLOSE_FRACTION)
            self._view.store.close()
            self._store.close()

    @contextmanager
    def _reading(self) -> Iterator[Store]:
        with self._view.lock, self._view.store.reading():
            yield self._view.store

    @contextmanager
    def _changing(self) -> Iterator[tuple[Store, State]]:
        with self._store.writing():
            yield self._store, self._store.state()

    def _committed(self, state: State) -> None:
        self._store.count_commit(state.commits)
        self._has_written = True
        self._rewrite_if_due(state, _REWRITE_FROM, _REWRITE_FRACTION)

    def _rewrite_if_due(self, state: State, least: int, fraction: int) -> None:
        """Write a new snapshot if more than `least` writes, and 1/fraction of the items, are not in the last one.

        Args:
            state: of the database.
            least: the number of writes that a snapshot is never written for.
            fraction: of the items, as its denominator.
        """
        if state.last - state.upto > max(least, state.items // fraction):
            self._view.try_to_compact(self._store)


def _words(segments: Segments) -> np.ndarray[Any, Any]:
    """The words of all codes; of a segment without deleted items, each distinct code once."""
    if any(segment.deleted is not None for segment in segments.segments):
        rows = segments.rows()
        return as_words(np.zeros((0, 1), dtype=np.uint8) if rows is None else rows.codes)
    return np.concatenate([segment.layout.words for segment in segments.segments])


def _size(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.exists() else 0
