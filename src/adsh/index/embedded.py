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
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import AdshError, AdshWarning, InputError
from ..hamming.ball import largest_radius
from ..hamming.bits import as_codes, as_words, check_codes, number_rows
from ..hamming.query import Query, code_queries, output_queries
from ..hamming.scan import faiss_module
from ..hamming.small_vectors import NONE, Projection
from .about import load_projection, save_projection
from .base import Index, Ranking
from .checks import check_count, check_features, check_keys, check_number, check_outputs, metadata_texts
from .export import to_faiss, to_npy, to_parquet
from .founding import found_index, open_store
from .matches import Item, Matches, StoredVectors
from .parts import Parts
from .rows import Rows
from .snapshot import SnapshotDamaged, read_snapshot
from .store import State, Store
from .texts import Texts
from .view import View
from .where import Where

_CHECKED_IN_FULL = 4 << 20  # bytes
_REWRITE_FROM, _REWRITE_PART = 50_000, 4  # a new snapshot when this many, and a quarter of all, are not in it
_CLOSE_FROM, _CLOSE_PART = 1_000, 50  # the same when a handle that wrote is closed
_FEW_VECTORS = 256
_DIFFER = "the snapshot and the database differ: open the index again, and it is made anew"


class EmbeddedIndex(Index):
    """An index in a folder."""

    def __init__(self, folder: Path, bits: int | None, model: str | None, timeout: float) -> None:
        self.folder = folder
        self._wrote = False
        self._writing = threading.Lock()
        self._store = open_store(folder, bits, timeout)  # writes
        reader = None
        try:
            self._about = found_index(self._store, bits, model)
            self.bits = self._about.bits
            self._projection: Projection | None = None
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

    @property
    def has_vectors(self) -> bool:
        """Whether items were ever added with vectors."""
        with self._view.lock, self._view.store.reading():
            return self._view.store.fact("projection") is not None

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
        with self._writing:
            with self._changing() as (store, state):
                small = None if vectors is None else self._small(store, vectors, len(encoded), fit=True)
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
        queries = self._queries(codes, ranking)
        k, offset = check_number("k", k, 1), check_number("offset", offset, 0)
        condition = None if where is None else Where(where)
        parts = self._view.parts()
        small = None
        if rerank:
            if vectors is None:
                raise InputError("rerank=True orders by vectors: give those of the queries as vectors=")
            with self._view.lock, self._view.store.reading():
                small = self._small(self._view.store, vectors, len(queries), fit=False)
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
        parts = self._view.parts()
        return [parts.within(query, radius, offset, limit, condition) for query in queries]

    def __len__(self) -> int:
        return len(self._view.parts())

    def __contains__(self, key: object) -> bool:
        try:
            check_keys([key])
        except InputError:  # no such key can be there
            return False
        assert isinstance(key, str)
        with self._view.lock, self._view.store.reading():
            return self._view.store.items_of(check_keys([key]), self.bits)[1] is not None

    def rows(self) -> Rows | None:
        """All items as columns, in the order of insertion; None where there are none."""
        return self._view.parts().rows()

    def get(self, keys: Sequence[str]) -> list[Item | None]:
        """The items of these keys as they are stored; None for a key that is not there."""
        encoded = check_keys(keys)
        with self._view.lock, self._view.store.reading():
            rows = self._view.store.items_of(encoded, self.bits)[1]
        found = {} if rows is None else {item.key: item for item in _as_items(rows, slice(0, len(rows)))}
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

    def items(self) -> Iterator[Item]:
        """Every item's key, code and metadata, in the order of insertion."""
        rows = self.rows()
        for start in range(0, 0 if rows is None else len(rows), 1 << 14):
            assert rows is not None
            yield from _as_items(rows, slice(start, min(start + (1 << 14), len(rows))))

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
            with self._view.store.reading():
                projection = load_projection(self._view.store.fact("projection"))
            faiss = "faiss" if faiss_module() is not None else "numpy"
            buckets = largest is not None and largest.layout.name == "buckets"
            return {
                "path": str(self.folder),
                "items": len(parts),
                "bits": self.bits,
                "model": self.model,
                "format_version": self._about.format_version,
                "search": "none" if largest is None else "buckets" if buckets else f"scan ({faiss})",
                "radius_looked_up": -1 if largest is None else largest_radius(self.bits, len(largest.layout.words)),
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

    def _queries(self, codes: Any, ranking: str) -> list[Query]:
        if ranking == "hamming":
            return code_queries(check_codes(as_codes(codes), self.bits), self.bits)
        if ranking == "asymmetric":
            return output_queries(check_outputs(codes, self.bits), self.bits)
        raise InputError(f'ranking={ranking!r}: choose "hamming" or "asymmetric"')

    def _small(self, store: Store, vectors: Any, count: int, *, fit: bool) -> NDArray[np.int8]:
        """Features as small vectors; the first ones ever given decide how."""
        if isinstance(vectors, StoredVectors):
            check_count("vectors", len(vectors.small), count)
            return vectors.small
        if self._projection is None:
            self._projection = load_projection(store.fact("projection"))
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
            store.set_fact("projection", save_projection(projection))
        return projection(features)

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


def _as_items(rows: Rows, some: slice) -> Iterator[Item]:
    keys = rows.keys.at(some)
    texts = [""] * len(keys) if rows.metadata is None else rows.metadata.at(some)
    for key, code, text in zip(keys, rows.codes[some], texts, strict=True):
        yield Item(key, code.tobytes(), json.loads(text) if text else None)


def _words(parts: Parts) -> np.ndarray[Any, Any]:
    """The words of all codes there are; of whole segments, each once."""
    if any(segment.gone is not None for segment in parts.segments):
        rows = parts.rows()
        return as_words(np.zeros((0, 1), dtype=np.uint8) if rows is None else rows.codes)
    return np.concatenate([segment.layout.words for segment in parts.segments])


def _size(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.exists() else 0
