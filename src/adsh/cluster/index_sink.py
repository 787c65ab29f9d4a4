"""Ingest encoded partitions into an index, each once.

The index stores which partitions it contains, so that an interrupted run can continue. Keys that the index has already
are left as they are: their codes may have been learned, and they may have metadata that an encoder does not know.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..index import Index
from .parquet_codes import ParquetCodes

_NOTE = "partitions coded"  # and the id of the collection: several may be ingested into one index


class IndexSink:
    """Ingests partitions into an index; does nothing if there is none."""

    def __init__(self, index: Index | None, codes: ParquetCodes) -> None:
        self._index, self._codes, self._note = index, codes, f"{_NOTE} {codes.id}"
        note = None if index is None else index.get_note(self._note)
        self._ingested = parse_ranges(note or "")
        self.added = 0  # keys that the index did not have

    def ingest(self, numbers: Iterable[int]) -> None:
        """Ingest those of these partitions that the index does not contain yet."""
        if self._index is None:
            return
        for number in sorted(set(numbers) - self._ingested):
            keys, codes = self._codes.read(number)
            new = [at for at, item in enumerate(self._index.get(keys)) if item is None]
            if new:
                self.added += self._index.add([keys[at] for at in new], codes[new], by_network=True)
            self._ingested.add(number)
            self._index.set_note(self._note, format_ranges(self._ingested))


def format_ranges(numbers: Iterable[int]) -> str:
    """Return numbers as a short text: 0-57 60 62-63."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)


def parse_ranges(text: str) -> set[int]:
    """Return the numbers of a text that `format_ranges` wrote."""
    numbers: set[int] = set()
    for part in text.split():
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers
