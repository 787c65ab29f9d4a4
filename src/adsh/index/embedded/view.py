"""What an open index holds, kept up to date with its database, and the writing of new snapshots."""

from __future__ import annotations

import secrets
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import replace

from ...errors import AdshError, AdshWarning
from .segment import Segment
from .segments import Parts
from .snapshot import SnapshotDamaged, read_snapshot, write_snapshot
from .store import DATABASE, State, Store

_LEFT_BEHIND = 3600.0  # seconds after which a snapshot that the database does not name cannot be one in the making


class View:
    """The items of an index after its last commit, whichever process made it."""

    def __init__(self, store: Store, bits: int) -> None:
        self.store = store  # a connection that only reads: commits of this handle show as those of others do
        self.bits = bits
        self.lock = threading.RLock()
        self.state: State | None = None
        self.rebuilt = False  # whether the snapshot had to be made again from the database
        self._parts = Parts(bits)
        self._version = -1

    def parts(self) -> Parts:
        """What the index holds now."""
        with self.lock:
            version = self.store.version()
            if version != self._version:
                self._refresh()
                self._version = version
            return self._parts

    def now(self) -> tuple[Parts, State]:
        """What the index holds, and the state that goes with it."""
        with self.lock:
            parts = self.parts()
            assert self.state is not None
            return parts, self.state

    def _refresh(self) -> None:
        while True:
            with self.store.reading() as state:
                try:
                    self._parts = self._updated(state)
                    self.state = state
                    return
                except SnapshotDamaged as problem:
                    damage = problem
            with self.store.reading() as later:
                if later.snapshot != state.snapshot:
                    continue  # another process replaced it in between
            warnings.warn(f"{damage}: it is made again from {DATABASE}", AdshWarning, stacklevel=5)
            with self.store.reading() as state:
                self._parts = self._with_new(Parts(self.bits), 0, state)
                self.state, self.rebuilt = state, True
                return

    def _updated(self, state: State) -> Parts:
        """The parts after this state's commit, from what was read before where that still holds."""
        known = self.state
        # an index that was emptied and compacted has no snapshot before or after: `upto` tells
        if known is not None and (known.snapshot, known.upto) == (state.snapshot, state.upto):
            return self._with_new(self._parts, known.last, state)
        if not state.snapshot:
            return self._with_new(Parts(self.bits), 0, state)
        arrays = read_snapshot(self.store.folder / state.snapshot)
        return self._with_new(Parts(self.bits, (Segment.from_arrays(arrays, self.bits),)), state.upto, state)

    def _with_new(self, parts: Parts, seen: int, state: State) -> Parts:
        """Parts that hold the writes up to number `seen`, and now those up to this state."""
        if state.last > seen:
            parts = parts.without(*self.store.removed(seen, self.bits))
            rows, total = self.store.items(seen, self.bits)
            if seen == 0 and total != state.sum:
                raise self.store.damaged("rows are missing")
            new = [] if rows is None else [rows]
            del rows  # freed as it is laid out
            parts = parts.with_rows(new, keep=1 if seen and state.snapshot else 0)
        if len(parts) != state.items:
            raise self.store.damaged(f"{len(parts)} items are there and {state.items} were stored")
        return parts

    def rebuild(self, writer: Store) -> None:
        """Everything anew from the database, and a snapshot of it."""
        with self.lock, self.store.reading() as state:
            self._parts, self.state = self._with_new(Parts(self.bits), 0, state), state
        self.try_to_compact(writer)

    def compact(self, writer: Store) -> None:
        """Writes a snapshot of everything. Nobody waits for it: only its name is put down in a transaction."""
        parts, base = self.now()
        whole = parts.whole()
        name = ""
        if whole is not None:
            name = f"snapshot-{base.last:012d}-{secrets.token_hex(4)}.bin"  # no two write the same file
            write_snapshot(self.store.folder / name, whole.arrays())
        del parts, whole
        with writer.writing():
            state = writer.state()
            useful = state.snapshot == base.snapshot  # else another process was faster
            if useful:
                writer.forget_removed(base.last)
                state = replace(state, commits=state.commits + 1, snapshot=name, upto=base.last)
                writer.set_state(state)
        writer.count_commit(state.commits)
        with self.lock:
            self._remove_snapshots(base.snapshot if useful else name)
            self.state, self._parts, self._version = None, Parts(self.bits), -1
            self.parts()

    def try_to_compact(self, writer: Store) -> None:
        """The same where it is not asked for: what was stored is safe whether or not it works."""
        try:
            self.compact(writer)
        except AdshError as problem:
            warnings.warn(f"no new snapshot was written: {problem}", AdshWarning, stacklevel=4)

    def _remove_snapshots(self, replaced: str) -> None:
        """Unlinks a snapshot that is not used any more, and what killed processes left; who has one mapped keeps it."""
        folder = self.store.folder
        old = time.time() - _LEFT_BEHIND
        for path in (*folder.glob("snapshot-*.bin"), *folder.glob(".snapshot-*.bin.new")):
            with suppress(OSError):
                if path.name == replaced or (path.name != self._named() and path.stat().st_mtime < old):
                    path.unlink()

    def _named(self) -> str:
        with self.store.reading() as state:
            return state.snapshot
