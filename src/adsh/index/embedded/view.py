"""What an open index holds, kept up to date with its database, and the writing of new snapshots."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ...errors import AdshError, AdshWarning
from .database import DATABASE, State
from .segment import Segment
from .segments import Segments
from .snapshot import SnapshotDamaged, read_snapshot, write_snapshot
from .store import Store


class View:
    """The items of an index after its last commit, whichever process committed it."""

    def __init__(self, store: Store, bits: int) -> None:
        self.store = store  # a connection that only reads, so it notices this handle's commits as it does others'
        self.bits = bits
        self.lock = threading.RLock()
        self.state: State | None = None
        self.rebuilt = False  # whether the snapshot had to be rebuilt from the database
        self._segments = Segments(bits)
        self._version = -1
        self._mapped: tuple[Path, int] | None = None  # the snapshot in use, and its size

    def segments(self) -> Segments:
        """Return what the index holds now."""
        with self.lock:
            version = self.store.version()
            if self._is_cut():
                self.state = None  # so that the snapshot is read again, and found damaged
            if version != self._version or self.state is None:
                self._refresh()
                self._version = version
            return self._segments

    def now(self) -> tuple[Segments, State]:
        """Return what the index holds now, and the state that belongs to it."""
        with self.lock:
            segments = self.segments()
            assert self.state is not None
            return segments, self.state

    def _is_cut(self) -> bool:
        """Whether the mapped snapshot was made shorter: the system ends a process that reads what is missing."""
        if self._mapped is None:
            return False
        path, size = self._mapped
        try:
            return path.stat().st_size < size
        except OSError:  # deleted, because another process replaced it: what is mapped stays
            return False

    def _refresh(self) -> None:
        while True:
            with self.store.reading() as state:
                try:
                    self._segments = self._updated(state)
                    self.state = state
                    return
                except SnapshotDamaged as problem:
                    damage = problem
            with self.store.reading() as later:
                if later.snapshot != state.snapshot:
                    continue  # another process replaced it in between
            warnings.warn(f"{damage}: it is rebuilt from {DATABASE}", AdshWarning, stacklevel=5)
            with self.store.reading() as state:
                self._segments = self._with_new(Segments(self.bits), 0, state)
                self.state, self.rebuilt = state, True
                return

    def _updated(self, state: State) -> Segments:
        """The segments after this state's commit; those read before are reused if their snapshot is still current."""
        known = self.state
        # an index that was emptied and compacted has no snapshot before or after: `upto` tells the two apart
        if known is not None and (known.snapshot, known.upto) == (state.snapshot, state.upto):
            return self._with_new(self._segments, known.last, state)
        self._mapped = None
        if not state.snapshot:
            return self._with_new(Segments(self.bits), 0, state)
        path = self.store.folder / state.snapshot
        arrays, size = read_snapshot(path)
        self._mapped = path, size
        return self._with_new(Segments(self.bits, (Segment.from_arrays(arrays, self.bits),)), state.upto, state)

    def _with_new(self, segments: Segments, seen: int, state: State) -> Segments:
        """Bring segments up to date.

        Args:
            segments: the segments with the writes up to number `seen`.
            seen: the last number they contain.
            state: the state to bring them to.

        Returns:
            The segments with all writes of the state.
        """
        if state.last > seen:
            segments = segments.without(*self.store.removed(seen, self.bits))
            rows, total = self.store.items(seen, self.bits)
            if seen == 0 and total != state.sum:
                raise self.store.damaged("rows are missing")
            new = [] if rows is None else [rows]
            del rows  # freed while it is laid out
            segments = segments.with_rows(new, keep=1 if seen and state.snapshot else 0)
        if len(segments) != state.items:
            raise self.store.damaged(f"{len(segments)} items are there and {state.items} were stored")
        return segments

    def rebuild(self, writer: Store) -> None:
        """Read everything from the database again, and write a snapshot of it."""
        with self.lock, self.store.reading() as state:
            self._mapped = None
            self._segments, self.state = self._with_new(Segments(self.bits), 0, state), state
        self.try_to_compact(writer)

    def compact(self, writer: Store) -> None:
        """Write a snapshot of everything. Nobody waits for it: only its name is stored in a transaction."""
        with writing_snapshot(self.store.folder) as only_writer:
            self._compact(writer, only_writer)

    def _compact(self, writer: Store, only_writer: Callable[[], bool]) -> None:
        segments, base = self.now()
        merged = segments.merged()
        name = ""
        if merged is not None:
            name = f"snapshot-{base.last:012d}-{secrets.token_hex(4)}.bin"  # no two processes write the same file
            write_snapshot(self.store.folder / name, merged.arrays())
        del segments, merged
        with writer.writing():
            state = writer.state()
            useful = state.snapshot == base.snapshot  # else another process was faster
            if useful:
                writer.forget_removed(base.last)
                state = replace(state, commits=state.commits + 1, snapshot=name, upto=base.last)
                writer.set_state(state)
        writer.count_commit(state.commits)
        with self.lock:
            self._remove_snapshots(base.snapshot if useful else name, leftovers=only_writer())
            self.state, self._segments, self._version = None, Segments(self.bits), -1
            self.segments()

    def try_to_compact(self, writer: Store) -> None:
        """Call `compact`, and warn if it fails: what was stored is safe in any case."""
        try:
            self.compact(writer)
        except AdshError as problem:
            warnings.warn(f"no new snapshot was written: {problem}", AdshWarning, stacklevel=4)

    def _remove_snapshots(self, replaced: str, *, leftovers: bool) -> None:
        """Delete a replaced snapshot, and on request what killed processes left; who has one mapped keeps it."""
        folder = self.store.folder
        for path in (*folder.glob("snapshot-*.bin"), *folder.glob(".snapshot-*.bin.new")):
            with suppress(OSError):
                if path.name == replaced or (leftovers and path.name != self._current_snapshot()):
                    path.unlink()

    def _current_snapshot(self) -> str:
        with self.store.reading() as state:
            return state.snapshot


@contextmanager
def writing_snapshot(folder: Path) -> Iterator[Callable[[], bool]]:
    """Hold a lock that those who write a snapshot share; yield a function that says whether nobody else does.

    A snapshot that the database does not name belongs to a process that writes it, or to one that was killed. A lock
    tells the two apart whatever the clocks say: the operating system releases it with the process.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks: nothing is ever known to be left over
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield lambda: _try_exclusive(handle)
    finally:
        os.close(handle)


def _try_exclusive(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
