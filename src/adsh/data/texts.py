"""Many short texts in little memory: one block of bytes and where each ends."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import overload


class Texts(Sequence[str]):
    """A list of strings that grows at its end, at 8 bytes a string beside its letters (a Python str takes 50)."""

    def __init__(self) -> None:
        self._bytes, self._ends = bytearray(), array("q", [0])

    def append(self, text: str) -> None:
        """Adds a text at the end."""
        self._bytes += text.encode("utf-8", "surrogateescape")
        self._ends.append(len(self._bytes))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        at = range(len(self))[index]
        if isinstance(at, int):
            return self._bytes[self._ends[at] : self._ends[at + 1]].decode("utf-8", "surrogateescape")
        return [self[i] for i in at]
