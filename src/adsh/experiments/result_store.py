"""Records of finished cells: one sorted `cells.jsonl`, and a file per cell while a run is under way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import FolderError, first_line
from ..utils.files import replacing_file
from .cell import Cell, Record

FILE, WORK_FOLDER = "cells.jsonl", "cells"

_LOCK = ".cells.lock"


class ResultStore:
    """Records by cell, in OUT/cells.jsonl and OUT/cells.

    A run writes each record to a file of its own in OUT/cells, so an interrupted run loses nothing, and several
    processes can run at once; `merge` moves those records into cells.jsonl. If a cell has a record in both, the file
    counts.
    """

    def __init__(self, out: Path) -> None:
        self.file = out / FILE
        self._folder, self._lock = out / WORK_FOLDER, out / _LOCK
        self._merged: dict[str, Record] = {}
        self._version: tuple[int, ...] | None = None  # of cells.jsonl, as it was read

    def has(self, cell: Cell) -> bool:
        """Return whether the cell has a record."""
        # the file first: a merge writes cells.jsonl before it removes the file, so one of the two is always found
        return self._path(cell).exists() or cell.name in self._read_merged()

    def write(self, cell: Cell, record: Record) -> None:
        """Write the record of a cell, completely or not at all."""
        with _locked(self._lock), replacing_file(self._path(cell)) as file:
            file.write((json.dumps(rounded(record), sort_keys=True) + "\n").encode())

    def read(self, cell: Cell) -> Record:
        """Return the record of a cell."""
        path = self._path(cell)
        try:
            return _read_record(path)
        except FileNotFoundError:
            merged = self._read_merged()
        if cell.name not in merged:
            raise FolderError(f"{self.file.parent} holds no record of {cell.name}: run it first")
        return dict(merged[cell.name])

    def results(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Record]]:
        """Iterate over the cells that have a record, each with its record."""
        return ((cell, self.read(cell)) for cell in cells if self.has(cell))

    def merge(self) -> int:
        """Move the records of OUT/cells into cells.jsonl, sorted by cell, and return how many were moved.

        A file without a complete record stays in place; after the others are moved, FolderError names it.
        """
        if not self._folder.is_dir() and not self.file.exists():
            return 0
        found, broken = dict[Path, Record](), list[FolderError]()
        with _locked(self._lock) as is_locked:
            if not is_locked:
                raise FolderError(f"{self._lock} cannot be locked: the records stay in {self._folder}, still readable")
            for path in sorted(self._folder.glob("*.json")):
                try:
                    found[path] = _read_record(path)
                except FolderError as problem:
                    broken.append(problem)
            records = self._read_merged() | {path.stem: record for path, record in found.items()}
            content = "".join(_line(name, records[name]) for name in sorted(records)).encode()
            if records and (not self.file.exists() or self.file.read_bytes() != content):
                with replacing_file(self.file) as file:
                    file.write(content)
            for path in found:
                path.unlink()
            with suppress(OSError):  # absent, or not empty
                self._folder.rmdir()
        if broken:
            raise broken[0]
        return len(found)

    def count(self) -> int:
        """Return how many cells have a record."""
        return len(self._read_merged().keys() | {path.stem for path in self._folder.glob("*.json")})

    def _path(self, cell: Cell) -> Path:
        return self._folder / f"{cell.name}.json"

    def _read_merged(self) -> dict[str, Record]:
        """Return the records of cells.jsonl, read again only after another process merged."""
        try:
            status = self.file.stat()
        except FileNotFoundError:
            return {}
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if version != self._version:
            self._merged, self._version = _read_lines(self.file), version
        return self._merged


def rounded(value: Any) -> Any:
    """Round floats to six places: enough for any table, and the same text on every machine that computes the same."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(entry) for entry in value]
    return round(value, 6) if isinstance(value, float) else value


def _line(name: str, record: Record) -> str:
    return json.dumps({"cell": name, **record}, sort_keys=True) + "\n"


def _read_record(path: Path) -> Record:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError) as problem:
        raise FolderError(f"{path} is no complete record ({first_line(problem)}): remove it, and run again") from None


def _read_lines(path: Path) -> dict[str, Record]:
    """Return the records of a cells.jsonl by cell name; of two lines of one cell, the later counts."""
    records = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as problem:
        raise FolderError(f"{path} cannot be read ({first_line(problem)})") from None
    for number, line in enumerate(lines, 1):
        try:
            record = dict(json.loads(line))
            records[str(record.pop("cell"))] = record
        except (ValueError, TypeError, KeyError) as problem:
            raise FolderError(
                f"{path}, line {number} is no complete record ({first_line(problem)}): remove the line, and run again"
            ) from None
    return records


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Keep other processes from changing the store; yield False where files cannot be locked."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("wb")
    except OSError as problem:
        raise FolderError(f"cannot write to {path.parent}: {first_line(problem)}") from None
    with file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        except (ImportError, OSError):  # not on this system, or not on this file system
            yield False
        else:
            yield True
