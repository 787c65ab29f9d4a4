"""The cells that are done, a file each: a stopped run goes on, several run side by side, and none is done twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import FolderError, first_line
from ..utils.files import replacing_file
from .cell import Cell

FOLDER = "cells"


class ResultStore:
    """Records by cell, in OUT/cells."""

    def __init__(self, out: Path) -> None:
        self._folder = out / FOLDER

    def has(self, cell: Cell) -> bool:
        """Whether the cell is done."""
        return self._path(cell).exists()

    def write(self, cell: Cell, record: dict[str, Any]) -> None:
        """Keeps a record, whole or not at all."""
        with replacing_file(self._path(cell)) as file:
            file.write((json.dumps(rounded(record)) + "\n").encode())

    def read(self, cell: Cell) -> dict[str, Any]:
        """The record of a cell that is done."""
        path = self._path(cell)
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise FolderError(f"{path} is no whole record ({first_line(problem)}): remove it, and run again") from None
        return record

    def done(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Those of the cells that are done, with their records."""
        return ((cell, self.read(cell)) for cell in cells if self.has(cell))

    def _path(self, cell: Cell) -> Path:
        return self._folder / f"{cell.name}.json"


def rounded(value: Any) -> Any:
    """Figures to six places: enough for any table, and the same text on every machine that computes the same."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(entry) for entry in value]
    return round(value, 6) if isinstance(value, float) else value
