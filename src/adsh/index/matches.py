"""The results of a search: keys, distances and metadata, nearest first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes

Metadata = dict[str, Any] | None


class Match(NamedTuple):
    """One result."""

    key: str
    distance: float
    metadata: Metadata


class Item(NamedTuple):
    """One item as it is stored."""

    key: str
    code: bytes
    metadata: Metadata


class StoredVectors(NamedTuple):
    """Vectors as an index stores them: features compressed to a few numbers of one byte each."""

    small: NDArray[np.int8]  # (n, dimensions)


class Matches:
    """The items found for one query, nearest first; equal distances in the order of insertion.

    Args:
        keys: of the items.
        distances: (len(keys),).
        texts: reads each item's metadata as JSON, empty for None; None if no item has any.
        codes: reads the packed codes; None if the index does not provide them.
    """

    __slots__ = ("_codes", "_metadata", "_texts", "distances", "keys")

    def __init__(
        self,
        keys: list[str],
        distances: NDArray[Any],
        texts: Callable[[], list[str]] | None = None,
        codes: Callable[[], Codes] | None = None,
    ) -> None:
        self.keys = keys
        # (len(keys),) floats if the ranking is asymmetric; else signed, so that they can be subtracted
        self.distances = distances if distances.dtype.kind == "f" else distances.astype(np.int64)
        self._texts = texts
        self._codes = codes
        self._metadata: list[Metadata] | None = None

    @property
    def metadata(self) -> list[Metadata]:
        """What was stored with each item, or None; read when it is first used."""
        if self._metadata is None:
            self._metadata = [json.loads(text) if text else None for text in self.metadata_texts()]
        return self._metadata

    def metadata_texts(self) -> list[str]:
        """Return the metadata of each item as JSON, empty for None."""
        return self._texts() if self._texts else [""] * len(self.keys)

    @property
    def codes(self) -> Codes | None:
        """The items' packed codes (len(keys), bytes); None if the index does not provide them."""
        return None if self._codes is None else self._codes()

    def select(self, rows: Sequence[int]) -> Matches:
        """Return the matches with these numbers, counted from 0, in this order."""
        texts, codes, order = self._texts, self._codes, np.asarray(rows, dtype=np.int64)

        def selected_texts() -> list[str]:
            read = self.metadata_texts()
            return [read[row] for row in rows]

        return Matches(
            [self.keys[row] for row in rows],
            self.distances[order],
            None if texts is None else selected_texts,
            None if codes is None else lambda: codes()[order],
        )

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Match]:
        return map(Match, self.keys, self.distances.tolist(), self.metadata)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key!r}: {distance:g}" for key, distance, _ in list(self)[:5])
        return f"Matches({shown}{', …' if len(self) > 5 else ''})"
