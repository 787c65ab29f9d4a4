"""The numbers in the metadata of many items, field by field: a filter compares arrays instead of parsing JSON.

A column holds a field's number for each item, and what the item has instead where that is no number. It decides most
conditions for most items; those that it leaves open are evaluated on the JSON, so that a filter means the same.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .deadline import check_deadline
from .text_column import TextColumn

Bools = NDArray[np.bool_]

_FIELDS = 16  # columns at most: those of the fields with numbers that most items have
_NAMES = 256  # fields that are looked through for numbers, from the most frequent on
_LEAST_SHARE = 16  # a field that fewer than 1/16 of the items have gets no column: its name is rare, and searched for
_AT_A_TIME, _BLOCK = 1 << 13, 1 << 22  # items, bytes: other threads wait no longer
_EXACT = float(1 << 53)  # up to this, integers and floats compare in NumPy as they do in Python
_ABSENT, _OTHER, _NUMBER, _OPEN = 0, 1, 2, 3  # open: a list, or an integer that no float holds
_MISSING = object()
_COMPARISONS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@dataclass(frozen=True)
class NumberColumn:
    """One field of n items."""

    values: NDArray[Any]  # (n,) 0 where the item has no number there
    kinds: NDArray[np.uint8]  # (n,) or (1,) if all are the same

    def decide(self, test: str, value: Any) -> tuple[Bools, Bools] | None:
        """Return which items meet a condition for certain, and which may; None for one that compares no numbers."""
        choices = list(value) if test in ("in", "not_in") else [value]
        if not all(map(_is_exact, choices)):
            return None
        if test in _COMPARISONS:
            holds = _COMPARISONS[test](self.values, np.float64(value))
            others = False
        else:
            if len(choices) == 1:
                holds = self.values == np.float64(choices[0])
            else:
                holds = np.isin(self.values, np.array(choices, dtype=np.float64))
            others = test in ("ne", "not_in")
            holds = ~holds if others else holds
        met: Bools = (holds & (self.kinds == _NUMBER)) | ((self.kinds == _OTHER) & others)
        return met, met | (self.kinds == _OPEN)


class NumberColumns:
    """The columns of a segment: read from its snapshot, or built from its metadata when a search needs them.

    Args:
        metadata: the items' JSON.
        columns: by field; None if they are not built yet.
    """

    def __init__(self, metadata: TextColumn, columns: dict[str, NumberColumn] | None = None) -> None:
        self._metadata = metadata
        self._columns = columns
        self._lock = threading.Lock()
        self._pieces: dict[str, list[tuple[int, NumberColumn]]] = {}  # by field, with the item each starts at
        self._done = 0  # items that are in the pieces: a build that is stopped goes on from there

    @property
    def ready(self) -> bool:
        """Whether they are built."""
        return self._columns is not None

    def columns(self) -> dict[str, NumberColumn]:
        """Return the columns by field, built now if they are not yet."""
        with self._lock:
            if self._columns is None:
                count = len(self._metadata)
                while self._done < count:
                    check_deadline()
                    self._add_piece(self._done, self._metadata.block_end(self._done, _AT_A_TIME, _BLOCK))
                self._columns = {name: _joined(pieces, count) for name, pieces in self._pieces.items()}
                self._pieces = {}
            return self._columns

    def _add_piece(self, start: int, stop: int) -> None:
        self._done = stop
        texts = self._metadata.run(start, stop)
        try:
            items = json.loads(f"[{','.join([text or '{}' for text in texts])}]")
        except RecursionError:  # nested as deeply as can be stored: these items stay open
            return
        for name, pieces in self._pieces.items():
            pieces.append((start, _column([item.get(name, _MISSING) for item in items])))
        for name, count in Counter(chain.from_iterable(items)).most_common(_NAMES):
            if len(self._pieces) == _FIELDS or count * _LEAST_SHARE < len(items):
                break
            if name not in self._pieces:
                column = _column([item.get(name, _MISSING) for item in items])
                if (column.kinds == _NUMBER).any():
                    self._pieces[name] = [(start, column)]


def columns_from_arrays(arrays: dict[str, NDArray[Any]]) -> dict[str, NumberColumn] | None:
    """Return the columns that a snapshot stores; None if it has none."""
    if "number_fields" not in arrays:
        return None
    names = json.loads(arrays["number_fields"].tobytes())
    return {name: NumberColumn(arrays[f"numbers_{i}"], arrays[f"kinds_{i}"]) for i, name in enumerate(names)}


def arrays_of(columns: dict[str, NumberColumn]) -> dict[str, NDArray[Any]]:
    """Return columns as a snapshot stores them."""
    arrays: dict[str, NDArray[Any]] = {"number_fields": np.frombuffer(json.dumps(list(columns)).encode(), np.uint8)}
    for i, column in enumerate(columns.values()):
        arrays |= {f"numbers_{i}": column.values, f"kinds_{i}": column.kinds}
    return arrays


def _is_exact(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _EXACT


def _kind(value: object) -> int:
    if value is _MISSING:
        return _ABSENT
    if isinstance(value, bool):
        return _OTHER
    if isinstance(value, float):
        return _NUMBER
    if isinstance(value, int):
        return _NUMBER if abs(value) < _EXACT else _OPEN
    return _OPEN if isinstance(value, list) else _OTHER


def _column(found: list[Any]) -> NumberColumn:
    """Return the column of these values of a field."""
    types = set(map(type, found))
    if types == {str}:
        return NumberColumn(np.zeros(len(found), np.int8), np.array([_OTHER], np.uint8))
    if types <= {int, float}:
        with suppress(OverflowError):
            values = np.array(found, dtype=np.float64)
            if (np.abs(values) < _EXACT).all():
                return NumberColumn(_compact(values), np.array([_NUMBER], np.uint8))
    kinds = np.array([_kind(value) for value in found], dtype=np.uint8)
    values = np.array([v if kind == _NUMBER else 0 for v, kind in zip(found, kinds.tolist(), strict=True)], np.float64)
    return NumberColumn(_compact(values), kinds[:1] if (kinds == kinds[0]).all() else kinds)


def _compact(values: NDArray[np.float64]) -> NDArray[Any]:
    """Return whole numbers in the smallest type that holds them."""
    if np.isfinite(values).all() and (values == np.trunc(values)).all():
        for dtype in (np.int8, np.int16, np.int32):
            limits = np.iinfo(dtype)
            if values.min() >= limits.min and values.max() <= limits.max:
                return values.astype(dtype)
    return values


def _joined(pieces: list[tuple[int, NumberColumn]], count: int) -> NumberColumn:
    """Return one column of `count` items; what no piece covers is open."""
    dtype = np.result_type(*(piece.values.dtype for _, piece in pieces))
    kinds = {int(kind) for _, piece in pieces for kind in piece.kinds}
    values = np.zeros(count, dtype=dtype)
    covered = sum(len(piece.values) for _, piece in pieces)
    if len(kinds) == 1 and covered == count:
        all_kinds = np.array(sorted(kinds), dtype=np.uint8)
    else:
        all_kinds = np.full(count, _OPEN, dtype=np.uint8)
    for start, piece in pieces:
        stop = start + len(piece.values)
        values[start:stop] = piece.values
        if len(all_kinds) > 1:
            all_kinds[start:stop] = piece.kinds
    return NumberColumn(values, all_kinds)
