"""An index as a collection that changes: listed, counted, changed in place, and brought along with its model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..models.fingerprint import ModelId, identify
from .filters import Filter
from .header import HEADER, Header
from .matches import Item, Metadata
from .validation import Batch, check_keys, check_number, metadata_texts

FOLLOWED = "followed"  # the note with the model whose database an index holds, where `model` is a newer one
_PAGE = 100


class ItemChange(NamedTuple):
    """What an item becomes; its vector and its place among equal distances stay."""

    metadata: Metadata
    code: bytes | None = None  # packed; None for the one it has
    by_network: int | None = None  # False: the code is by no network any more; else as of `networks`; None: as it was


class Page(NamedTuple):
    """Some items of a listing."""

    items: list[Item]
    cursor: str | None  # where the next page starts; None after the last one


Change = Callable[[Item], ItemChange | None]  # None leaves the item as it is


class Collection(ABC):
    """The part of `Index` that is about the items as a whole."""

    location: str  # for messages: a folder, or an address without its password
    _header: Header

    @property
    def model(self) -> str | None:
        """The fingerprint of the model that computed the codes; None if it was never given."""
        return self._header.model

    @property
    def lineage(self) -> tuple[str, ...]:
        """The fingerprints of the models that `model` descends from by updates, oldest first."""
        return self._header.lineage

    def accept_model(self, model: Any) -> None:
        """Take codes of an updated model from now on, beside those of the models that it descends from.

        An update leaves the codes of items whose labels stay as they are, so codes of both can be compared.

        Args:
            model: a model folder, a fitted model, or a name for one.

        Raises:
            InputError: the model does not descend from that of this index, or this index follows a newer one.
        """
        before, known = self._stored_header(), identify(model)
        if before.model is not None and known.fingerprint != before.model and not self.get_note(FOLLOWED):
            before.advanced_to(known, len(self), self.location)  # raises before anything is written
            self.set_note(FOLLOWED, before.model)
        self._header = self._accept(known)

    def refresh(self) -> None:
        """Read again which model the index follows: another process may have let it accept a newer one."""
        self._header = self._stored_header()

    def _stored_header(self) -> Header:
        return Header.from_json(self._fact(HEADER), self.location, self._header.format_version)

    def outdated(self, after: str = "", count: int = 1 << 14) -> list[str]:
        """Return keys of items whose codes are by the network of an earlier model, in alphabetical order.

        Args:
            after: start behind this key.
            count: how many to return at most.
        """
        return self._outdated(self._header.generation, after, check_number("count", count, 1))

    def networks(self, keys: Sequence[str]) -> list[int | None]:
        """Return which model's network computed the code of each item, counted along `lineage`; None for none."""
        found = self._networks(check_keys(keys))
        return [found.get(key) for key in keys]

    def page(self, count: int = _PAGE, cursor: str | None = None, where: dict[str, Any] | None = None) -> Page:
        """Return some items, and where the next ones start; every item that stays is listed once.

        Args:
            count: how many items to return at most.
            cursor: that of the page before; None for the first.
            where: a filter on the metadata, as in `search`.

        Returns:
            The items, in alphabetical order of their keys (in Milvus, in the order of insertion).
        """
        return self._page(cursor or "", check_number("count", count, 1), None if where is None else Filter(where))

    def count(self, where: dict[str, Any] | None = None) -> int:
        """Return how many items meet a filter, or how many there are."""
        return len(self) if where is None else len(self._matching_keys(Filter(where)))

    def remove_where(self, where: dict[str, Any]) -> int:
        """Remove all items that meet a filter, and return how many there were. Durable when it returns."""
        condition = Filter(where)
        if not condition.has_conditions:
            raise InputError("where={} is met by every item: give a condition")
        return self._remove([key.encode() for key in self._matching_keys(condition)])

    def change(self, keys: Sequence[str], change: Change) -> int:
        """Change stored items in one transaction: their metadata, and their codes where that is told.

        Args:
            keys: of the items; those that do not exist are left out.
            change: is called with each item, and returns what becomes of it.

        Returns:
            How many items were changed.
        """
        return self._change(check_keys(keys), change)

    def change_metadata(self, keys: Sequence[str], fields: dict[str, Any]) -> int:
        """Set fields of stored items' metadata, and remove those whose value is None; other fields stay.

        Args:
            keys: of the items; those that do not exist are left out.
            fields: the new values by name.

        Returns:
            How many of the keys exist.
        """
        if not isinstance(fields, dict):
            raise InputError(f"fields are of type {type(fields).__name__}: give a dictionary of names and values")
        return self.change(keys, lambda item: ItemChange(merged(item.metadata, fields)))

    def remove(self, keys: Sequence[str]) -> int:
        """Remove items, and return how many of the keys existed. Durable when it returns."""
        return self._remove(check_keys(keys))

    def set_note(self, name: str, text: str, *, overwrite: bool = True) -> None:
        """Store a short text with the index, such as the path of the model. Durable when it returns.

        Args:
            name: of the note.
            text: what it says.
            overwrite: whether to replace a note of this name.
        """
        self._set_fact(f"note:{name}", text.encode(), overwrite=overwrite)

    def get_note(self, name: str) -> str | None:
        """Return the text that `set_note` stored under this name; None if there is none."""
        stored = self._fact(f"note:{name}")
        return None if stored is None else stored.decode()

    def _accept(self, model: ModelId) -> Header:
        """Store the header with this model, in one transaction with checking it, and return it."""
        header = self._stored_header().advanced_to(model, len(self), self.location)
        self._set_fact(HEADER, header.to_json())
        return header

    def _outdated(self, generation: int, after: str, count: int) -> list[str]:
        """Return keys of items by networks before this generation.

        Args:
            generation: the number of the present model.
            after: only keys behind this one.
            count: how many at most.
        """
        return []  # where no marks are kept

    def _networks(self, keys: list[bytes]) -> dict[str, int]:
        """Return the generation of the model for those of these items whose codes a network computed."""
        return {}  # where no marks are kept

    def _page(self, cursor: str, count: int, where: Filter | None) -> Page:
        """Return some items behind a cursor, "" for the first."""
        start, found = int(cursor) if cursor.isdecimal() else 0, list[Item]()
        for number, item in enumerate(self.items()):
            if number >= start and (where is None or where.holds(item.metadata or {})):
                if len(found) == count:
                    return Page(found, str(number))
                found.append(item)
        return Page(found, None)

    def _matching_keys(self, where: Filter) -> list[str]:
        """Return the keys of all items that meet a filter."""
        return [item.key for item in self.items() if where.holds(item.metadata or {})]

    def _change(self, keys: list[bytes], change: Change) -> int:
        """Change items in one transaction, where the store has any, and return how many were changed."""
        items = [item for item in self.get([key.decode() for key in keys]) if item is not None]
        changes = changed_items(items, change)
        if not changes:
            return 0
        names = [items[number].key for number, _ in changes]
        codes = np.stack([np.frombuffer(one.code or items[number].code, np.uint8) for number, one in changes])
        found = self.networks(names)
        texts = metadata_texts([one.metadata for _, one in changes], len(changes))
        self._add(Batch([name.encode() for name in names], codes, texts, new_marks(changes, found)), None)
        return len(changes)

    @abstractmethod
    def get(self, keys: Sequence[str]) -> list[Item | None]:
        """Return the stored items of these keys; None for a key that does not exist."""

    @abstractmethod
    def items(self) -> Iterator[Item]:
        """Yield every item's key, code and metadata, in the order of insertion."""

    @abstractmethod
    def _add(self, batch: Batch, vectors: Any) -> int:
        """Store at least one item, and return how many keys are new; `vectors` is not None if there are any."""

    @abstractmethod
    def _remove(self, keys: list[bytes]) -> int:
        """Remove the items of these keys, and return how many there were."""

    @abstractmethod
    def _fact(self, name: str) -> bytes | None:
        """Return the value stored with the index under this name; None if there is none."""

    @abstractmethod
    def _set_fact(self, name: str, value: bytes, *, overwrite: bool = True) -> None:
        """Store a value with the index under this name.

        Args:
            name: of the fact.
            value: what to store.
            overwrite: whether to replace a stored value.
        """

    @abstractmethod
    def __len__(self) -> int: ...


def merged(metadata: Metadata, fields: dict[str, Any]) -> Metadata:
    """Return metadata with these fields set, and without those whose value is None; None where nothing is left."""
    values = {**(metadata or {}), **fields}
    return {name: value for name, value in values.items() if value is not None or name not in fields} or None


def changed_items(items: Sequence[Item], change: Change) -> list[tuple[int, ItemChange]]:
    """Return what becomes of those items that change, with their numbers."""
    changes = ((number, change(item)) for number, item in enumerate(items))
    return [(number, one) for number, one in changes if one is not None]


def new_marks(changes: Sequence[tuple[int, ItemChange]], marks: Sequence[int | None]) -> list[int | None]:
    """Return the generation of the network that gave each changed item's code, as `Index.networks` does.

    Args:
        changes: what becomes of the items.
        marks: of the items before.
    """
    after = [mark if one.by_network is None else one.by_network for (_, one), mark in zip(changes, marks, strict=True)]
    return [None if mark is False else mark for mark in after]
