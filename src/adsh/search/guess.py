"""Guess what a query shows, from the labels of the items around it.

Every item of a sample of the index votes for its labels, with the weight exp(-16 d / bits) at distance d. The ten
nearest items alone would say little: where all items of a class share a code they are of one class, and agree even on a
query between two. `benchmarks/guess.py` measures how often such guesses are right.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes, as_words
from ..index import Index, Item

LABEL_FIELDS = ("class", "label", "labels", "classes")
"""The fields that say what an item is, best first."""
_SAMPLE = 4096  # items that vote
_LABELS, _LABEL = 32, 200  # labels that one item votes for, and characters of one: a longer text is no label
_DECAY = 16  # by which the exponent of the weight falls from distance 0 to all bits
_SECONDS = 10.0  # that a sample is used for


class Guess(NamedTuple):
    """A label that a query probably has.

    Attributes:
        label: The label with the largest share.
        share: The weight of the items with this label, divided by that of all items that vote, from 0 to 1. It is large
            where the items of this label are much nearer than all others, and says nothing of labels that the index
            lacks.
        items: How many items vote: all of the index, or a sample of it.
        field: The field of the metadata that the label is a value of.
    """

    label: str
    share: float
    items: int
    field: str


class Guesser:
    """Guess labels from an index, of which a sample is kept for some seconds.

    An item with several labels votes for each of them, 32 at most, one without a label for none, and a query that is an
    item of the index does not vote. There is no guess where no item has a label, and for a large index on a server,
    which cannot be sampled evenly.
    """

    def __init__(self, index: Index) -> None:
        self._index, self._lock = index, threading.Lock()
        self._votes: _Votes | None = None
        self._sampled_at = -_SECONDS

    def __call__(self, code: Codes, own_key: str | None = None) -> Guess | None:
        """Return a guess for a query; None where there is none.

        Args:
            code: (1, bytes) packed.
            own_key: The query's key, if it is an item of the index.
        """
        votes = self._current()
        return None if votes is None else votes.guess(code, own_key)

    def _current(self) -> _Votes | None:
        with self._lock:
            if time.monotonic() - self._sampled_at >= _SECONDS:
                self._votes = _Votes.of(self._sample(), self._index.bits)
                self._sampled_at = time.monotonic()
            return self._votes

    def _sample(self) -> list[Item]:
        """Return items spread evenly over the index; none where that takes too long."""
        index = self._index
        if index.folder is not None:
            return index.sample(_SAMPLE)
        count = len(index)
        items = index.first(_SAMPLE) if count < _SAMPLE else []
        return items if len(items) >= count else []


class _Votes:
    """The items of a sample as distinct rows of a code and labels, with a count each.

    Args:
        rows: The number of each row, by code and labels.
        row_of_key: Each item's row.
        field: The field that the labels are from.
        bits: The length of the codes.
    """

    def __init__(
        self, rows: dict[tuple[bytes, tuple[str, ...]], int], row_of_key: dict[str, int], field: str, bits: int
    ) -> None:
        self._row_of_key, self._field = row_of_key, field
        codes = np.frombuffer(b"".join(code for code, _ in rows), np.uint8).reshape(len(rows), -1)
        self._words = as_words(codes)  # (rows, words)
        self._counts = np.bincount(list(row_of_key.values()), minlength=len(rows)).astype(np.float64)
        labels = list(dict.fromkeys(label for _, some in rows for label in some))
        number = {label: at for at, label in enumerate(labels)}
        pairs = [(row, number[label]) for row, (_, some) in enumerate(rows) for label in some]
        self._labels = labels
        self._voter, self._voted = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        self._weight = np.exp(-_DECAY * np.arange(bits + 1) / bits)  # (bits + 1,) of an item at each distance

    @classmethod
    def of(cls, items: Sequence[Item], bits: int) -> _Votes | None:
        """Return the votes of items; None where none has a label."""
        names = {name for item in items for name in item.metadata or ()}
        field = next((name for name in LABEL_FIELDS if name in names), None)
        if field is None:
            return None
        rows: dict[tuple[bytes, tuple[str, ...]], int] = {}
        row_of_key = {
            item.key: rows.setdefault((item.code, _labels((item.metadata or {}).get(field))), len(rows))
            for item in items
        }
        return cls(rows, row_of_key, field, bits) if any(some for _, some in rows) else None

    def guess(self, code: Codes, own_key: str | None) -> Guess | None:
        """Return what the items say of a query.

        Args:
            code: (1, bytes) packed.
            own_key: The query's key, if it is an item.
        """
        counts, voters = self._counts, len(self._row_of_key)
        own_row = self._row_of_key.get(own_key) if own_key is not None else None
        if own_row is not None:
            counts, voters = counts.copy(), voters - 1
            counts[own_row] -= 1
        distances = np.bitwise_count(self._words ^ as_words(code)).sum(axis=1, dtype=np.int64)
        weight: NDArray[np.float64] = self._weight[distances] * counts  # (rows,)
        votes = np.bincount(self._voted, weight[self._voter], len(self._labels))
        best = int(votes.argmax())
        if not votes[best] > 0:
            return None
        return Guess(self._labels[best], float(min(1.0, votes[best] / weight.sum())), voters, self._field)


def _labels(value: Any) -> tuple[str, ...]:
    """Return the first labels that the value of a field holds, each once."""
    values = value[:_LABELS] if isinstance(value, list) else [value]
    texts = (str(one) for one in values if isinstance(one, str | int | float))
    return tuple(dict.fromkeys(text for text in texts if 0 < len(text) <= _LABEL))
