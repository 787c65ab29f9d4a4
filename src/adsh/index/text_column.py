"""A column of short texts as one array of bytes: keys and metadata in memory and in a snapshot.

Each text is UTF-8 followed by a NUL, so neighbours are decoded together and split: 100 keys cost a few microseconds.
Unlike `data.texts`, a list of strings that grows, a column is fixed, can be mapped from a file and gathers by position.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.layout import compact_type
from ..hamming.scan import ranges
from .deadline import check_deadline

_AT_A_TIME = 1 << 15
_BLOCK = 1 << 18  # bytes that are searched at once, while other threads wait


class TextColumn:
    """Texts without NUL characters, by position."""

    __slots__ = ("blob", "offsets", "view")

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[Any]) -> None:
        self.blob = blob
        self.view = memoryview(blob)  # type: ignore[arg-type]  # an array is a buffer
        self.offsets = offsets  # (n + 1,) text i is blob[offsets[i] : offsets[i + 1] - 1]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> TextColumn:
        """Build a column of these texts."""
        joined = b"\0".join([*texts, b""])
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) + 1
        return cls(np.frombuffer(joined, dtype=np.uint8), _offsets(lengths))

    @classmethod
    def split(cls, blob: bytes, count: int) -> TextColumn:
        """Build a column of `count` texts that are separated by NULs."""
        octets = np.frombuffer(blob + b"\0", dtype=np.uint8)
        ends = np.flatnonzero(octets == 0)
        if len(ends) != count:
            raise ValueError(f"{len(ends)} texts, not {count}")
        offsets = np.zeros(count + 1, dtype=compact_type(len(octets)))
        offsets[1:] = ends + 1
        return cls(octets, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def blob_of(self, position: int) -> bytes:
        """Return one text as bytes, which may be invalid UTF-8 if a file is damaged."""
        return bytes(self.view[int(self.offsets[position]) : int(self.offsets[position + 1]) - 1])

    def lengths(self) -> NDArray[Any]:
        """Return how many bytes each text takes, including its NUL."""
        lengths: NDArray[Any] = self.offsets[1:] - self.offsets[:-1]
        return lengths

    def run(self, start: int, stop: int) -> list[str]:
        """Return the texts from `start` up to, not including, `stop`."""
        if start == stop:
            return []
        first, end = self.offsets[start], self.offsets[stop]
        return str(self.view[first : end - 1], "utf-8").split("\0")

    def at(self, positions: NDArray[np.int64] | slice) -> list[str]:
        """Return the texts at these positions."""
        if isinstance(positions, slice):
            return self.run(positions.start, positions.stop)
        view = self.view
        starts, ends = self.offsets[positions].tolist(), (self.offsets[positions + 1] - 1).tolist()
        return [str(view[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]

    def block_end(self, start: int, count: int, size: int) -> int:
        """Return the end of a block of texts.

        Args:
            start: its first text.
            count: how many texts it has at most.
            size: how many bytes it has at most, unless its first text alone has more.

        Returns:
            The position after its last text.
        """
        within = int(np.searchsorted(self.offsets, int(self.offsets[start]) + size, side="right")) - 1
        return min(start + count, len(self), max(within, start + 1))

    def containing(self, needle: bytes, at_most: int) -> NDArray[np.int64] | None:
        """Return the positions of the texts that contain these bytes, ascending; None if more than `at_most` do."""
        pattern, found, start = re.compile(re.escape(needle)), [], 0
        while start < len(self):
            check_deadline()
            stop = self.block_end(start, len(self), _BLOCK)
            first, end = int(self.offsets[start]), int(self.offsets[stop])
            ends = [first + match.end() for match in pattern.finditer(self.view[first:end])]
            if ends:
                found.append(np.unique(np.searchsorted(self.offsets, ends, side="left") - 1))
                if sum(map(len, found)) > at_most:
                    return None
            start = stop
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    def take(self, positions: NDArray[Any]) -> TextColumn:
        """Return a new column of the texts at these positions, in their order."""
        offsets = np.zeros(len(positions) + 1, dtype=self.offsets.dtype)
        for start in range(0, len(positions), _AT_A_TIME):  # in pieces, to hold no second array of n lengths
            at = positions[start : start + _AT_A_TIME].astype(np.int64)
            offsets[start + 1 : start + 1 + len(at)] = self.offsets[at + 1] - self.offsets[at]
        np.cumsum(offsets, out=offsets)
        blob = np.empty(int(offsets[-1]), dtype=np.uint8)
        for start in range(0, len(positions), _AT_A_TIME):
            at = positions[start : start + _AT_A_TIME]
            ends = offsets[start : start + len(at) + 1]
            blob[int(ends[0]) : int(ends[-1])] = self.blob[ranges(self.offsets[at], ends[1:] - ends[:-1])]
        return TextColumn(blob, offsets)


def concatenate(columns: list[TextColumn]) -> TextColumn:
    """Return the texts of all columns, one column after the other; the list is emptied."""
    if len(columns) == 1:
        return columns.pop()
    offsets = _offsets(np.concatenate([column.lengths() for column in columns]))
    blobs = [column.blob for column in columns]
    columns.clear()
    return TextColumn(np.concatenate(blobs), offsets)


def _offsets(lengths: NDArray[Any]) -> NDArray[Any]:
    dtype = compact_type(int(lengths.sum(dtype=np.int64)))
    offsets = np.zeros(len(lengths) + 1, dtype=dtype)
    np.cumsum(lengths, out=offsets[1:], dtype=dtype)
    return offsets
