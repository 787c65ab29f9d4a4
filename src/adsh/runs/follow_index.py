"""Let an index follow the updates of a run: new items come, others get new labels and codes or go, all others stay.

What a killed call left undone is done by the next one: until the end, the index remembers the model that it started at.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, open_source
from ..data.match_input import resize_for_model
from ..errors import AdshError, InputError
from ..index import Index, Item
from ..index.collection import FOLLOWED, ItemChange
from ..index.copy import copy
from ..index.corrections import Corrections
from ..index.item_labels import classes_of, with_classes
from ..index.locate import MODEL, open_existing
from ..models.adsh import ADSH, load
from ..models.fingerprint import identify
from ..models.label_codes import code_of_labels
from ..models.storage_format import INDEX
from ..search.item_metadata import describe_item
from ..search.recode import count_outdated
from ..utils.files import find_file
from ..utils.progress import OnProgress
from .database import RunItems
from .run_dir import RunFolder
from .update import requested
from .update_inputs import Origin, origins_of
from .update_record import UpdateRecord, renamed, updates_since

_BLOCK = 512  # items of one durable change


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
            self._store_known(known)
            self._store_new([key for key in block if stored[key] is None])
            changed, added = changed + len(known), added + len(block) - len(known)
            if on_done:
                on_done(start + len(block), len(keys))
        return added, changed

    def rename_others(self) -> int:
        """Give items that are not of the model's database the names that their classes have now, and their codes."""
        updates = [update.rename for update in self._updates if update.rename]
        keys = [key for key in self._index.keys() if key not in self._position] if updates else []  # noqa: SIM118  # an index, not a dictionary
        count = 0
        for start in range(0, len(keys), _BLOCK):
            block = keys[start : start + _BLOCK]
            marks = dict(zip(block, self._index.networks(block), strict=True))
            count += self._index.change(block, partial(self._rename, updates, marks))
        return count

    def _store_known(self, keys: list[str]) -> None:
        """Give items of the index the labels and codes that they have now; other metadata and vectors stay."""

        def now(item: Item) -> ItemChange:
            position = self._position[item.key]
            names = [str(name) for name in self._labels[position]]
            code = self._codes[position].tobytes()
            return ItemChange(with_classes(item.metadata, names), code, by_network=False if names else None)

        self._index.change(keys, now)

    def _rename(
        self, updates: list[dict[str, str | None]], marks: dict[str, int | None], item: Item
    ) -> ItemChange | None:
        """Return an item under the new names of its labels, with their code unless the network gave it; None for none.

        Args:
            updates: The new names of each update, oldest first.
            marks: By key, what `Index.networks` says.
            item: The item.
        """
        before = names = classes_of(item.metadata)
        for rename in updates:
            names = renamed(names, rename)
        if names == before:
            return None
        code = code_of_labels(self._model, names) if marks[item.key] is None else None
        return ItemChange(with_classes(item.metadata, names), code)

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
        Corrections(index).use(requested(out).corrections)
        index.set_note(MODEL, str(out.absolute()))
    return result
