"""The default index: a folder on this machine, with one writer at a time and any number of readers.

    index.db          the truth: keys, codes, metadata and vectors in SQLite
    snapshot-N.bin    the same, laid out for searching and mapped into memory
    commits           how many commits were made

What was written after the snapshot is read into memory when it is first searched for. A handle sees the commits of
other processes with its next call. Files of up to 4 MiB are checked in full when opened, larger ones by `verify`;
whatever is read is checked always.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import AdshError, AdshWarning, FolderError, InputError
from ..hamming.bits import as_codes, check_bits, check_codes, number_rows
from ..hamming.query import Query, code_queries, output_queries
from ..hamming.scan import faiss_module
from ..hamming.small_vectors import Projection
from .about import About, load_projection, save_projection
from .base import Index, Ranking
from .checks import check_count, check_features, check_keys, check_number, check_outputs, metadata_texts
from .export import to_faiss, to_npy, to_parquet
from .matches import Item, Matches
from .parts import Parts
from .rows import Rows
from .segment import Segment
from .snapshot import SnapshotDamaged, read_snapshot, write_snapshot
from .store import DATABASE, State, Store
from .texts import Texts
from .where import Where

TIMEOUT = 10.0

_CHECKED_IN_FULL = 4 << 20  # bytes
_REWRITE_FROM, _REWRITE_PART = 50_000, 4  # a new snapshot when this many, and a quarter of all, are not in it
_CLOSE_FROM, _CLOSE_PART = 1_000, 50  # the same when a handle that wrote is closed
_FEW_VECTORS = 256


class EmbeddedIndex(Index):
    """An index in a folder."""

    def __init__(self, folder: Path, bits: int | None, model: str | None, timeout: float) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        self._wrote = False
        _check_folder(folder, bits)
        self._store = Store(folder, timeout)
        try:
            self._about = self._made(bits, model)
            self.bits = self._about.bits
            self._state, self._parts = State(commits=-1), Parts(self.bits)
            self._version = -1
            self._projection: Projection | None = None
            self._rebuilt = False
            self._refresh()
            if self._rebuilt:
                self._rewrite()
            if self._store.bytes_on_disk() <= _CHECKED_IN_FULL and (problems := self.verify()):
                raise self._store.damaged(problems[0])
        except BaseException:
            self._store.close()
            raise

    @property
    def model(self) -> str | None:  # type: ignore[override]
        """The fingerprint of the model that made the codes, where it was given."""
        return self._about.model

    def add(
        self, keys: Sequence[str], codes: Any, metadata: Sequence[Any] | None = None, *, vectors: Any = None
    ) -> int:
        """Stores items, and gives how many keys are new: see `Index.add`."""
        encoded = check_keys(keys)
        packed = check_codes(codes, self.bits)
        check_count("codes", len(packed), len(encoded))
        texts = metadata_texts(metadata, len(encoded))
        if not encoded:
            return 0
        with self._lock, self._store.writing():
            state = self._store.state()
            small = None if vectors is None else self._small(vectors, len(encoded), fit=True)
            numbers, old, checks = self._store.items_of(encoded, self.bits)
            first = state.last + 1 + len(numbers)
            places = np.arange(first, first + len(encoded), dtype=np.int64)
            if old is not None:
                self._store.remove(state.last + 1, numbers, old)
                known = dict(zip(old.keys.at(slice(0, len(old))), old.places.tolist(), strict=True))
                for at, key in enumerate(keys):
                    places[at] = known.get(key, places[at])
            metadata_column = None if texts is None else Texts.of(texts)
            added = self._store.insert(first, Rows(places, packed, Texts.of(encoded), metadata_column, small))
            new = len(encoded) - len(numbers)
            state = replace(
                state,
                commits=state.commits + 1,
                items=state.items + new,
                sum=(state.sum + added - int(checks.sum(dtype=np.uint64))) % (1 << 64),
                last=first + len(encoded) - 1,
            )
            self._store.set_state(state)
        self._committed(state)
        return new

    def remove(self, keys: Sequence[str]) -> int:
        """Takes items out, and gives how many of the keys were there."""
        encoded = check_keys(keys)
        with self._lock, self._store.writing():
            state = self._store.state()
            numbers, old, checks = self._store.items_of(encoded, self.bits)
            if old is None:
                return 0
            self._store.remove(state.last + 1, numbers, old)
            state = replace(
                state,
                commits=state.commits + 1,
                items=state.items - len(old),
                sum=(state.sum - int(checks.sum(dtype=np.uint64))) % (1 << 64),
                last=state.last + len(old),
            )
            self._store.set_state(state)
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
        queries = self._queries(codes, ranking)
        k, offset = check_number("k", k, 1), check_number("offset", offset, 0)
        condition = None if where is None else Where(where)
        parts = self._refresh()
        small = None
        if rerank:
            if vectors is None:
                raise InputError("rerank=True orders by vectors: give those of the queries as vectors=")
            with self._lock, self._store.reading():
                small = self._small(vectors, len(queries), fit=False)
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
        queries = self._queries(codes, "hamming")
        radius, offset = check_number("radius", radius, 0), check_number("offset", offset, 0)
        limit = None if limit is None else check_number("limit", limit, 1)
        condition = None if where is None else Where(where)
        parts = self._refresh()
        return [parts.within(query, radius, offset, limit, condition) for query in queries]

    def __len__(self) -> int:
        return len(self._refresh())

    def __contains__(self, key: object) -> bool:
        with self._lock, self._store.reading():
            return isinstance(key, str) and self._store.items_of(check_keys([key]), self.bits)[1] is not None

    def rows(self) -> Rows | None:
        """All items as columns, in the order of insertion; None where there are none."""
        return self._refresh().rows()

    def get(self, keys: Sequence[str]) -> list[Item | None]:
        """The items of these keys as they are stored; None for a key that is not there."""
        encoded = check_keys(keys)
        with self._lock, self._store.reading():
            rows = self._store.items_of(encoded, self.bits)[1]
        found = {} if rows is None else {item.key: item for item in _as_items(rows, slice(0, len(rows)))}
        return [found.get(key) for key in keys]

    def note(self, name: str, text: str) -> None:
        """Keeps a short text beside the items."""
        with self._lock, self._store.writing():
            self._store.set_fact(f"note:{name}", text.encode())

    def noted(self, name: str) -> str | None:
        """The text kept under this name."""
        with self._lock, self._store.reading():
            stored = self._store.fact(f"note:{name}")
        return None if stored is None else stored.decode()

    def items(self) -> Iterator[Item]:
        """Every item's key, code and metadata, in the order of insertion."""
        rows = self.rows()
        for start in range(0, 0 if rows is None else len(rows), 1 << 14):
            assert rows is not None
            yield from _as_items(rows, slice(start, min(start + (1 << 14), len(rows))))

    def keys(self) -> list[str]:
        """Every key, in the order of insertion."""
        rows = self.rows()
        return [] if rows is None else rows.keys.run(0, len(rows))

    def to_faiss(self) -> Any:
        """The codes as a faiss.IndexBinaryFlat; its number i is `keys()[i]`."""
        return to_faiss(self.rows(), self.bits)

    def to_npy(self, path: str | Path) -> Path:
        """Writes the codes to a .npy file and the keys beside it to NAME.keys.npy, whose path it gives."""
        return to_npy(self.rows(), self.bits, Path(path))

    def to_parquet(self, path: str | Path) -> None:
        """Writes key, code and metadata (JSON) as a Parquet file."""
        to_parquet(self.rows(), self.bits, Path(path))

    def compact(self) -> None:
        """Writes a new snapshot of everything, which makes opening and searching as fast as they can be."""
        with self._lock:
            parts, base = self._refresh(), self._state
            whole = parts.whole()
            name = ""
            if whole is not None:
                name = f"snapshot-{base.last:012d}-{os.getpid()}.bin"  # no two processes write one file
                write_snapshot(self.folder / name, whole.arrays())
            with self._store.writing():
                state = self._store.state()
                if state.snapshot == base.snapshot:  # else another process was faster
                    self._store.forget_removed(base.last)
                    state = replace(state, commits=state.commits + 1, snapshot=name, upto=base.last)
                    self._store.set_state(state)
            self._store.count_commit(state.commits)
            self._state, self._version = State(commits=-1), -1
            self._refresh()
            self._remove_old_snapshots(base.last)

    def verify(self) -> list[str]:
        """Reads everything and gives what is wrong with it: nothing, where all is well."""
        try:
            with self._lock:
                problems = [f"SQLite: {told}" for told in self._store.problems()]
                parts = self._refresh()
                with self._store.reading() as state:
                    rows, total = self._store.items(0, self.bits)
                    if state.last != self._state.last:
                        parts = self._update(state)
                if (0 if rows is None else len(rows)) != state.items or total != state.sum:
                    problems.append(f"{0 if rows is None else len(rows)} items are there and {state.items} were stored")
                if state.snapshot:
                    read_snapshot(self.folder / state.snapshot)
                if not _same(rows, parts.rows()):
                    problems.append("the snapshot and the database differ: compact() makes it anew")
            return problems
        except (AdshError, SnapshotDamaged) as problem:
            return [str(problem)]

    def info(self) -> dict[str, Any]:
        """What the index holds and how it is searched."""
        with self._lock:
            parts, state = self._refresh(), self._state
            largest = max(parts.segments, key=len, default=None)
            with self._store.reading():
                projection = load_projection(self._store.fact("projection"))
            faiss = "faiss" if faiss_module() is not None else "numpy"
            buckets = largest is not None and largest.layout.name == "buckets"
            return {
                "path": str(self.folder),
                "items": len(parts),
                "bits": self.bits,
                "model": self.model,
                "format_version": self._about.format_version,
                "search": "none" if largest is None else "buckets" if buckets else f"scan ({faiss})",
                "distinct_codes": number_rows(_words(parts))[0] if parts.segments else 0,
                "vector_dimensions": 0 if projection is None else projection.components.shape[1],
                "snapshot": state.snapshot or None,
                "items_after_snapshot": sum(map(len, parts.segments[bool(state.snapshot) :])),
                "bytes": self._store.bytes_on_disk() + _size(self.folder / state.snapshot if state.snapshot else None),
            }

    def close(self) -> None:
        """Ends the use of this handle; what was added stays."""
        with self._lock:
            if self._wrote:
                self._wrote = False
                self._rewrite_if_due(_CLOSE_FROM, _CLOSE_PART)
            self._store.close()

    def _made(self, bits: int | None, model: str | None) -> About:
        """What this index is, made where it is missing."""
        store = self._store
        if not store.is_made():
            if bits is None:
                raise InputError(f"{self.folder} holds no index yet: give bits= to make one")
            with store.writing():
                store.make_tables()
                if store.fact("about") is None:
                    store.set_fact("about", About(check_bits(bits), model).to_json())
                    store.set_state(State())
        about = About.from_json(store.fact("about"), self.folder)
        if bits is not None and check_bits(bits) != about.bits:
            raise InputError(
                f"bits={bits}, but {self.folder} holds codes of {about.bits} bits: open it with that, or none"
            )
        if model is not None and model != about.model:
            with store.writing():
                about = About.from_json(store.fact("about"), self.folder).with_model(
                    model, store.state().items, self.folder
                )
                store.set_fact("about", about.to_json())
        return about

    def _queries(self, codes: Any, ranking: str) -> list[Query]:
        if ranking == "hamming":
            return code_queries(check_codes(as_codes(codes), self.bits), self.bits)
        if ranking == "asymmetric":
            return output_queries(check_outputs(codes, self.bits), self.bits)
        raise InputError(f'ranking={ranking!r}: choose "hamming" or "asymmetric"')

    def _small(self, vectors: Any, count: int, *, fit: bool) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Features as small vectors; the first ones ever given decide how."""
        if self._projection is None:
            self._projection = load_projection(self._store.fact("projection"))
        width = None if self._projection is None else len(self._projection.mean)
        features = check_features(vectors, width, count)
        projection = self._projection
        if projection is None:
            if not fit:
                raise InputError(f"{self.folder} holds no vectors: add items with vectors= to re-rank by them")
            if count < _FEW_VECTORS:
                warnings.warn(
                    f"the first vectors given decide how all are shortened, and there are only {count}: "
                    f"add {_FEW_VECTORS} or more first",
                    AdshWarning,
                    stacklevel=3,
                )
            projection = Projection.fit(features)
            self._store.set_fact("projection", save_projection(projection))
        return projection(features)

    def _committed(self, state: State) -> None:
        self._store.count_commit(state.commits)
        self._wrote, self._version = True, -1
        self._rewrite_if_due(_REWRITE_FROM, _REWRITE_PART, state)

    def _rewrite_if_due(self, least: int, part: int, state: State | None = None) -> None:
        """Writes a new snapshot where much is not in the last one. What was stored is safe whether or not it works."""
        state = state or self._state
        if state.last - state.upto > max(least, state.items // part):
            self._rewrite()

    def _rewrite(self) -> None:
        try:
            self.compact()
        except AdshError as problem:
            warnings.warn(f"no new snapshot was written: {problem}", AdshWarning, stacklevel=5)

    def _refresh(self) -> Parts:
        """What the index holds now, the commits of other processes included."""
        with self._lock:
            version = self._store.version()
            if version != self._version:
                with self._store.reading() as state:
                    self._parts = self._update(state)
                self._state, self._version = state, version
            return self._parts

    def _update(self, state: State) -> Parts:
        """The parts after this state's commit, from what was read before where that still holds."""
        store, parts, seen = self._store, self._parts, self._state.last
        if self._state.commits < 0 or state.snapshot != self._state.snapshot:
            parts, seen = self._from_snapshot(state)
        if state.last > seen:
            parts = parts.without(*store.removed(seen, self.bits))
            rows, total = store.items(seen, self.bits)
            if seen == 0 and total != state.sum:
                raise store.damaged("rows are missing")
            new = [] if rows is None else [rows]
            del rows  # freed as it is laid out
            parts = parts.with_rows(new, bool(state.snapshot))
        if len(parts) != state.items:
            raise store.damaged(f"{len(parts)} items are there and {state.items} were stored")
        return parts

    def _remove_old_snapshots(self, number: int) -> None:
        """Unlinks the snapshots before this one, half-written ones too; who has one mapped keeps it."""
        for path in (*self.folder.glob("snapshot-*.bin"), *self.folder.glob(".snapshot-*.bin.new")):
            if int(path.name.split("-")[1]) < number:
                with suppress(OSError):
                    path.unlink()

    def _from_snapshot(self, state: State) -> tuple[Parts, int]:
        """The snapshot, or everything anew from the database where that is damaged or missing."""
        if not state.snapshot:
            return Parts(self.bits), 0
        try:
            arrays = read_snapshot(self.folder / state.snapshot)
            return Parts(self.bits, (Segment.from_arrays(arrays, self.bits),)), state.upto
        except SnapshotDamaged as problem:
            warnings.warn(f"{problem}: it is made again from {DATABASE}", AdshWarning, stacklevel=5)
            self._rebuilt = True
            return Parts(self.bits), 0


def _check_folder(folder: Path, bits: int | None) -> None:
    if (folder / DATABASE).exists():
        return
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"{folder} is a file: an index is a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise FolderError(f"{folder} holds other files and no index: give a new or empty folder")
    if bits is None:
        raise InputError(f"there is no index at {folder}: give bits= to make one")
    check_bits(bits)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise FolderError(f"cannot make {folder}: {problem.strerror}") from None


def _as_items(rows: Rows, some: slice) -> Iterator[Item]:
    keys = rows.keys.at(some)
    texts = [""] * len(keys) if rows.metadata is None else rows.metadata.at(some)
    for key, code, text in zip(keys, rows.codes[some], texts, strict=True):
        yield Item(key, code.tobytes(), json.loads(text) if text else None)


def _same(one: Rows | None, other: Rows | None) -> bool:
    if one is None or other is None:
        return one is other
    if not (np.array_equal(one.places, other.places) and np.array_equal(one.codes, other.codes)):
        return False
    for mine, yours in ((one.keys, other.keys), (one.metadata, other.metadata)):
        if (mine is None) != (yours is None):
            return False
        if mine is not None and yours is not None and mine.run(0, len(mine)) != yours.run(0, len(yours)):
            return False
    if one.vectors is None or other.vectors is None:
        return one.vectors is other.vectors
    return np.array_equal(one.vectors, other.vectors)


def _words(parts: Parts) -> np.ndarray[Any, Any]:
    return np.concatenate([segment.layout.words for segment in parts.segments])


def _size(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.exists() else 0
