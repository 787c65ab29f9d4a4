"""Coded partitions into an index, each once: which ones it holds is noted there, so that a stopped run goes on.

Keys that the index has already stay as they are: they may have been learned, with metadata that a network knows not.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..index import Index
from .parquet_codes import ParquetCodes

_NOTED = "partitions coded"  # and whose: several collections may go into one index


class IndexSink:
    """Puts partitions into an index; does nothing where there is none."""

    def __init__(self, index: Index | None, parts: ParquetCodes) -> None:
        self._index, self._parts, self._note = index, parts, f"{_NOTED} {parts.id}"
        noted = None if index is None else index.noted(self._note)
        self._held = numbers_of(noted or "")
        self.new = 0  # keys that the index did not have

    def put(self, numbers: Iterable[int]) -> None:
        """Those that it does not hold yet."""
        if self._index is None:
            return
        for number in sorted(set(numbers) - self._held):
            keys, codes = self._parts.read(number)
            new = [at for at, item in enumerate(self._index.get(keys)) if item is None]
            if new:
                self.new += self._index.add([keys[at] for at in new], codes[new])
            self._held.add(number)
            self._index.note(self._note, as_ranges(self._held))


def as_ranges(numbers: Iterable[int]) -> str:
    """Numbers as a short text: 0-57 60 62-63."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)


def numbers_of(text: str) -> set[int]:
    """The numbers of such a text."""
    found: set[int] = set()
    for one in text.split():
        first, _, last = one.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found
