"""Let an index follow the updates of a run: new items come, others get new labels and codes or go, all others stay.

What a killed call left undone is done by the next one: until the end, the index remembers the model that it started at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, open_source
from ..data.match_input import resize_for_model
from ..errors import AdshError, InputError
from ..index import Index, Item
from ..index.base import FOLLOWED
from ..index.copy import copy
from ..index.locate import MODEL, open_existing
from ..labels import LabelSets
from ..models.adsh import ADSH, load
from ..models.fingerprint import identify
from ..models.storage_format import INDEX
from ..search.item_metadata import describe_item
from ..search.recode import count_outdated
from ..utils.files import find_file
from ..utils.progress import OnProgress
from .database import RunItems
from .run_dir import RunFolder
from .update_inputs import Origin, origins_of
from .update_record import UpdateRecord, renamed, updates_since

_BLOCK = 512  # items of one durable change
_CLASS = "class"  # the field that holds an item's labels


@dataclass(frozen=True)
class FollowResult:
    """What was changed in an index."""

    added: int
    changed: int
    removed: int
    renamed: int
    """Items that are not of the model's database, whose class has another name."""
    outdated: int
    """Items whose codes are by the network of an earlier model: `recode` encodes them again."""
    items: int
    seconds: float


def follow(index: Index, folder: Path, model: ADSH | None = None, on_done: OnProgress | None = None) -> FollowResult:
    """Bring an index up to the model of a run.

    Args:
        index: An index of this model, or of one that it descends from.
        folder: The run's folder.
        model: The same model, if it is loaded.
        on_done: Called with the number of items looked at, and of all.

    Returns:
        What was changed.

    Raises:
        InputError: The index holds codes of another model.
    """
    started = time.perf_counter()
    known = identify(folder)
    if index.model is None:
        raise InputError(f"{index.location} does not say which model its codes are of: build it again")
    index.accept_model(known)
    since = index.get_note(FOLLOWED) or index.model
    if since == known.fingerprint:
        return FollowResult(0, 0, 0, 0, count_outdated(index), len(index), time.perf_counter() - started)
    loaded: ADSH = load(folder, device="cpu") if model is None else model
    following = _Following(index, folder, loaded, updates_since(folder, since))
    removed = following.remove()
    added, changed = following.write(on_done)
    others = following.rename_others()
    index.set_note(FOLLOWED, "")
    return FollowResult(
        added, changed, removed, others, count_outdated(index), len(index), time.perf_counter() - started
    )


class _Following:
    """The changes that some updates make to an index.

    Args:
        index: The index.
        folder: The run's folder.
        model: Its model.
        updates: The updates since the model that the index followed, oldest first.
    """

    def __init__(self, index: Index, folder: Path, model: ADSH, updates: list[UpdateRecord]) -> None:
        self._index, self._model, self._updates = index, model, updates
        self._items = RunItems.load(folder)
        self._origins = origins_of(RunFolder(folder).read_run())
        self._position = {key: at for at, key in enumerate(self._items.keys)}
        self._codes, self._labels = model.database_codes_, model.database_labels_
        self._sources: dict[int, Dataset] = {}

    def remove(self) -> int:
        """Remove the items that the updates removed."""
        keys = [key for update in self._updates for key in update.removed if key not in self._position]
        keys = list(dict.fromkeys(keys))
        blocks = (keys[start : start + _BLOCK] for start in range(0, len(keys), _BLOCK))
        return sum(self._index.remove(block) for block in blocks)

    def write(self, on_done: OnProgress | None) -> tuple[int, int]:
        """Store the items that the updates added or changed, and return how many of each there were."""
        named = (key for update in self._updates for key in (*update.changed, *update.added))
        keys = [key for key in dict.fromkeys(named) if key in self._position]
        keys.sort(key=self._position.__getitem__)
        added = changed = 0
        for start in range(0, len(keys), _BLOCK):
            block = keys[start : start + _BLOCK]
            stored = dict(zip(block, self._index.get(block), strict=True))
            known = [key for key in block if stored[key] is not None]
            self._store_known([item for item in stored.values() if item is not None])
            self._store_new([key for key in block if stored[key] is None])
            changed, added = changed + len(known), added + len(block) - len(known)
            if on_done:
                on_done(start + len(block), len(keys))
        return added, changed

    def rename_others(self) -> int:
        """Give items that are not of the model's database the names that their classes have now, and their codes."""
        updates = [update.rename for update in self._updates if update.rename]
        count = 0
        for items in self._others() if updates else ():
            changed = []
            for item in items:
                before = now = _classes(item)
                for rename in updates:
                    now = renamed(now, rename)
                if now != before:
                    changed.append((item, now))
            if changed:
                self._store_renamed(changed)
            count += len(changed)
        return count

    def _others(self) -> Iterator[list[Item]]:
        every = self._index.keys()
        keys = [key for key in every if key not in self._position]
        for start in range(0, len(keys), _BLOCK):
            yield [item for item in self._index.get(keys[start : start + _BLOCK]) if item is not None]

    def _store_known(self, items: list[Item]) -> None:
        """Give items of the index the labels and codes that they have now; other metadata and vectors stay."""
        positions = [self._position[item.key] for item in items]
        names = [[str(name) for name in self._labels[at]] for at in positions]
        metadata = [with_classes(item.metadata, found) for item, found in zip(items, names, strict=True)]
        unlabelled = [not found for found in names]
        keys = [item.key for item in items]
        generations = self._index.networks(keys) if keys else []
        marks = [n if bare else None for n, bare in zip(generations, unlabelled, strict=True)]
        replace_items(self._index, keys, self._codes[positions], metadata, marks)

    def _store_renamed(self, changed: list[tuple[Item, list[str]]]) -> None:
        keys = [item.key for item, _ in changed]
        marks = self._index.networks(keys)
        labels = {str(name): name for name in self._model.known_labels}
        codes = np.stack([np.frombuffer(item.code, dtype=np.uint8) for item, _ in changed])
        for row, ((_, names), mark) in enumerate(zip(changed, marks, strict=True)):
            if mark is None and names and set(names) <= set(labels):
                codes[row] = self._model.code_for(LabelSets([0], [[labels[name] for name in names]]))[0]
        metadata = [with_classes(item.metadata, names) for item, names in changed]
        replace_items(self._index, keys, codes, metadata, marks)

    def _store_new(self, keys: list[str]) -> None:
        """Add items that the index does not have, with vectors where it has some and the items can be read."""
        positions = np.array([self._position[key] for key in keys], dtype=np.int64)
        for number in np.unique(self._items.source[positions]).tolist():
            chosen = positions[self._items.source[positions] == number]
            origin, at = self._origins[number], self._items.at[chosen]
            dataset = self._source(number, origin).subset(at)
            names = [[str(name) for name in self._labels[int(position)]] for position in chosen]
            metadata = [
                with_classes(describe_item(dataset, row, origin.source, origin.root), found)
                for row, found in enumerate(names)
            ]
            new = [self._items.keys[position] for position in chosen.tolist()]
            by_network = [not found for found in names]
            vectors = self._vectors(dataset)
            self._index.add(new, self._codes[chosen], metadata, vectors=vectors, by_network=by_network)

    def _source(self, number: int, origin: Origin) -> Dataset:
        if number not in self._sources:
            self._sources[number] = open_source(origin.source, root=origin.root, labels=origin.labels)
        return self._sources[number]

    def _vectors(self, dataset: Dataset) -> Any:
        if not (self._index.keeps_vectors and self._index.has_vectors):
            return None
        try:
            items = resize_for_model(dataset, self._model.input_shape_)
            return self._model.encode_with_features(items)[1]
        except (AdshError, OSError):  # an image that can no longer be read
            return None


def replace_items(
    index: Index, keys: list[str], codes: Any, metadata: list[dict[str, Any]], marks: list[int | None]
) -> None:
    """Replace the codes and metadata of items, whose vectors stay.

    Args:
        index: The index.
        keys: Of the items.
        codes: Their codes, one a row.
        metadata: One of each.
        marks: What `Index.networks` says of each from now on.
    """
    vectors = index.stored_vectors(keys) if keys else None
    if vectors is not None or not index.has_vectors:
        groups = [list(range(len(keys)))] if keys else []
    else:  # some have vectors, and others do not
        groups = [[row] for row in range(len(keys))]
    for rows in groups:
        chosen = [keys[row] for row in rows]
        stored = vectors if vectors is not None else index.stored_vectors(chosen)
        values = [metadata[row] for row in rows]
        index.add(chosen, codes[rows], values, vectors=stored, by_network=[marks[row] for row in rows])


def with_classes(metadata: dict[str, Any] | None, names: list[str]) -> dict[str, Any]:
    """Return an item's metadata with these labels as its class, as `describe_item` writes them."""
    others = {name: value for name, value in (metadata or {}).items() if name != _CLASS}
    return others | ({_CLASS: names[0] if len(names) == 1 else names} if names else {})


def _classes(item: Item) -> list[str]:
    """Return the labels that an item's metadata names."""
    found = (item.metadata or {}).get(_CLASS)
    values = found if isinstance(found, list) else [found]
    return [value for value in values if isinstance(value, str)]


def follow_run(
    before: Path, out: Path, location: str | None, model: ADSH | None, on_done: OnProgress | None
) -> FollowResult | None:
    """Let the index of a run follow its update; where the updated run is in another folder, a copy of the index.

    Args:
        before: The run that was updated.
        out: Where the updated run is.
        location: The index; None for the one in the run's folder.
        model: The updated model, if it is loaded.
        on_done: Called with the number of items looked at, and of all.

    Returns:
        What was changed; None where there is no index.
    """
    own = find_file(before, INDEX)
    if location is None and not own.is_dir():
        return None
    if location is None and out != before:
        copy(str(own), str(out / INDEX))
    with open_existing(str(out / INDEX) if location is None else location) as index:
        result = follow(index, out, model, on_done)
        index.set_note(MODEL, str(out.absolute()))
    return result
