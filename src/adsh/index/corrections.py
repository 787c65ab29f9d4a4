"""Corrections of items' labels: kept with the index, with who made them and when, until an update of the model.

A correction is of one item or of several, and is undone as a whole. Its record is written before the items are changed:
where a process is killed in between, the record says what was meant, and the next update uses it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..errors import FolderError, InputError
from .base import Index
from .collection import ItemChange
from .item_labels import classes_of, with_classes
from .matches import Item

OPEN, UNDONE, USED = "open", "undone", "used"
MOST_ITEMS, LONGEST_LABEL, MOST_LABELS = 200, 200, 20  # of one correction
_FIRST = "corrections from"  # the note with the number before which none is open

CodeFor = Callable[[Sequence[str]], bytes | None]


@dataclass(frozen=True)
class CorrectedItem:
    """What a correction did to one item."""

    key: str
    before: list[str]
    """Its labels before."""
    labels: list[str]
    """Its labels now; none where the label was wrong and no other is given."""
    code_before: str
    """Its code before, in hexadecimal digits."""
    by_network: int | None
    """What `Index.networks` said of that code."""
    code_changed: bool
    """Whether it got the code of its labels; where the model has none for these, it keeps its code."""


@dataclass(frozen=True)
class Correction:
    """One correction, of one item or of several."""

    number: int
    who: str
    when: str
    items: list[CorrectedItem]
    state: str = OPEN
    token: str = ""

    @classmethod
    def of(cls, text: str) -> Correction:
        """Read what `text` wrote."""
        values = json.loads(text)
        return cls(**{**values, "items": [CorrectedItem(**item) for item in values["items"]]})

    def text(self) -> str:
        """Return the correction as it is stored."""
        return json.dumps(asdict(self))


class Corrections:
    """The corrections that are kept with an index.

    Args:
        index: The index.
        code_for: Returns the code of labels, where the model has one; None to leave all codes as they are.
    """

    def __init__(self, index: Index, code_for: CodeFor | None = None) -> None:
        self._index, self._code_for = index, code_for

    def add(self, labels: Mapping[str, Sequence[str] | None], who: str = "") -> Correction:
        """Give items other labels, at once and for the next update of the model.

        Args:
            labels: The right labels by key; None where those that it has are wrong, and the right ones are not known.
            who: Who says so.

        Returns:
            The correction, with what was changed.

        Raises:
            InputError: An item does not exist, or a label cannot be one.
        """
        right = {key: _checked(names) for key, names in labels.items()}
        if not 1 <= len(right) <= MOST_ITEMS:
            raise InputError(f"{len(right):,} items: correct from 1 to {MOST_ITEMS:,} at a time")
        keys = list(right)
        items = self._index.get(keys)
        missing = [key for key, item in zip(keys, items, strict=True) if item is None]
        if missing:
            raise InputError(f"there is no item with the key {missing[0][:80]!r}: nothing was corrected")
        marks = self._index.networks(keys)
        there = [item for item in items if item is not None]
        corrected = [self._corrected(item, right[item.key], mark) for item, mark in zip(there, marks, strict=True)]
        when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        correction = self._record(Correction(0, who[:100], when, corrected, token=secrets.token_hex(8)))
        self._apply(correction)
        return correction

    def undo(self, number: int) -> Correction:
        """Give the items of a correction the labels and codes back that they had before.

        Raises:
            InputError: There is no such correction, it is not open any more, or an item was changed since.
        """
        correction = self._read(number)
        if correction is None or correction.state != OPEN:
            state = "does not exist" if correction is None else f"is {correction.state} already"
            raise InputError(f"correction {number} {state}: list those that are open")
        corrected = {item.key: item for item in correction.items}
        for item in self._index.get(list(corrected)):
            one = None if item is None else corrected[item.key]
            if item is not None and one and classes_of(item.metadata) not in (one.labels, one.before):
                raise InputError(f"{item.key} was changed after correction {number}: undo the later change first")

        def back(item: Item) -> ItemChange:
            one = corrected[item.key]
            mark = False if one.by_network is None else one.by_network
            return ItemChange(with_classes(item.metadata, one.before), bytes.fromhex(one.code_before), mark)

        self._index.change(list(corrected), back)
        undone = replace(correction, state=UNDONE)
        self._write(undone)
        return undone

    def open(self) -> list[Correction]:
        """Return the corrections that no update of the model has used yet, oldest first."""
        return [each for each in self._all(self._first()) if each.state == OPEN]

    def use(self, numbers: Sequence[int]) -> None:
        """Close corrections that an update of the model has used."""
        for number in numbers:
            correction = self._read(number)
            if correction is not None and correction.state == OPEN:
                self._write(replace(correction, state=USED))
        first = self._first()
        while (each := self._read(first)) is not None and each.state != OPEN:
            first += 1
        self._index.set_note(_FIRST, str(first))

    def _corrected(self, item: Item, labels: list[str], mark: int | None) -> CorrectedItem:
        code = None if self._code_for is None or not labels else self._code_for(labels)
        return CorrectedItem(item.key, classes_of(item.metadata), labels, item.code.hex(), mark, code is not None)

    def _apply(self, correction: Correction) -> None:
        corrected = {item.key: item for item in correction.items}

        def right(item: Item) -> ItemChange:
            one = corrected[item.key]
            code = self._code_for(one.labels) if one.code_changed and self._code_for is not None else None
            return ItemChange(with_classes(item.metadata, one.labels), code, None if code is None else False)

        self._index.change(list(corrected), right)

    def _record(self, correction: Correction) -> Correction:
        """Store a correction under the next number, which another process may be faster to take."""
        number = self._first()
        while True:
            while self._read(number) is not None:
                number += 1
            numbered = replace(correction, number=number)
            self._index.set_note(_name(number), numbered.text(), overwrite=False)
            stored = self._read(number)
            if stored is not None and stored.token == correction.token:
                return numbered

    def _first(self) -> int:
        return int(self._index.get_note(_FIRST) or 1)

    def _all(self, first: int) -> list[Correction]:
        found = []
        while (each := self._read(first)) is not None:
            found.append(each)
            first += 1
        return found

    def _read(self, number: int) -> Correction | None:
        text = self._index.get_note(_name(number))
        if text is None:
            return None
        try:
            return Correction.of(text)
        except (ValueError, TypeError, KeyError):
            raise FolderError(f"correction {number} of {self._index.location} is damaged: restore a copy") from None

    def _write(self, correction: Correction) -> None:
        self._index.set_note(_name(correction.number), correction.text())


def _name(number: int) -> str:
    return f"correction {number}"


def _checked(names: Any) -> list[str]:
    """Return labels, each once; none for None."""
    labels = list(dict.fromkeys(names or ()))
    if isinstance(names, str) or len(labels) > MOST_LABELS:
        raise InputError(f"labels={names!r:.60}: give a list of at most {MOST_LABELS} labels")
    for label in labels:
        if not isinstance(label, str) or not 0 < len(label) <= LONGEST_LABEL or not label.isprintable():
            raise InputError(f"{label!r:.60} is no label: give a text of 1 to {LONGEST_LABEL} characters")
    return labels
