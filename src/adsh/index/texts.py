"""Many short texts as one blob: what keys and metadata are in memory and in a snapshot.

Each text is UTF-8 followed by a NUL, so neighbours are decoded together and split: 100 keys cost a few microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.layout import compact_type
from ..hamming.scan import ranges

_AT_A_TIME = 1 << 15


class Texts:
    """Texts without NUL characters, by position."""

    __slots__ = ("blob", "offsets", "view")

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[Any]) -> None:
        self.blob = blob
        self.view = memoryview(blob)  # type: ignore[arg-type]  # an array is a buffer
        self.offsets = offsets  # (n + 1,) text i is blob[offsets[i] : offsets[i + 1] - 1]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Texts:
        """These texts."""
        joined = b"\0".join([*texts, b""])
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) + 1
        return cls(np.frombuffer(joined, dtype=np.uint8), _offsets(lengths))

    @classmethod
    def joined(cls, blob: bytes, count: int) -> Texts:
        """`count` texts with a NUL between each two."""
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
        """One text as bytes, which may be no text at all where a file is damaged."""
        return bytes(self.view[int(self.offsets[position]) : int(self.offsets[position + 1]) - 1])

    def parts(self) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """What two equal lists of texts agree in: their bytes, and how many each text takes."""
        return self.blob, self.lengths()

    def lengths(self) -> NDArray[Any]:
        """How many bytes each text takes, its NUL included."""
        lengths: NDArray[Any] = self.offsets[1:] - self.offsets[:-1]
        return lengths

    def run(self, start: int, stop: int) -> list[str]:
        """The texts from `start` to before `stop`."""
        if start == stop:
            return []
        first, end = self.offsets[start], self.offsets[stop]
        return str(self.view[first : end - 1], "utf-8").split("\0")

    def at(self, positions: NDArray[np.int64] | slice) -> list[str]:
        """The texts at these positions."""
        if isinstance(positions, slice):
            return self.run(positions.start, positions.stop)
        view = self.view
        starts, ends = self.offsets[positions].tolist(), (self.offsets[positions + 1] - 1).tolist()
        return [str(view[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]

    def take(self, positions: NDArray[Any]) -> Texts:
        """New texts: those at these positions, each given once, in their order."""
        offsets = np.zeros(len(positions) + 1, dtype=self.offsets.dtype)
        for start in range(0, len(positions), _AT_A_TIME):  # in pieces: no column of lengths beside the offsets
            some = positions[start : start + _AT_A_TIME].astype(np.int64)
            offsets[start + 1 : start + 1 + len(some)] = self.offsets[some + 1] - self.offsets[some]
        np.cumsum(offsets, out=offsets)
        blob = np.empty(int(offsets[-1]), dtype=np.uint8)
        for start in range(0, len(positions), _AT_A_TIME):
            some = positions[start : start + _AT_A_TIME]
            ends = offsets[start : start + len(some) + 1]
            blob[int(ends[0]) : int(ends[-1])] = self.blob[ranges(self.offsets[some], ends[1:] - ends[:-1])]
        return Texts(blob, offsets)


def joined(parts: list[Texts]) -> Texts:
    """All texts, one part after the other; the list is emptied."""
    if len(parts) == 1:
        return parts.pop()
    offsets = _offsets(np.concatenate([part.lengths() for part in parts]))
    blobs = [part.blob for part in parts]
    parts.clear()
    return Texts(np.concatenate(blobs), offsets)


def _offsets(lengths: NDArray[Any]) -> NDArray[Any]:
    dtype = compact_type(int(lengths.sum(dtype=np.int64)))
    offsets = np.zeros(len(lengths) + 1, dtype=dtype)
    np.cumsum(lengths, out=offsets[1:], dtype=dtype)
    return offsets
