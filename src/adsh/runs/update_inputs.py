"""What an update works on: the new items of a source, the changes that files and flags name, and the items before."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset, Items, as_items, open_source
from ..data.fingerprint import differences, fingerprint
from ..data.joined_items import JoinedItems
from ..data.match_input import resize_for_model
from ..errors import AdshError, FolderError, InputError
from ..learn.changes import Changes
from ..models.adsh import ADSH
from ..models.protocol import HashModel
from ..utils.progress import OnProgress
from .database import RunItems
from .inputs import prepare_inputs

Indices = NDArray[np.int64]
_LABELS_OF = "labels of"  # aspects of a fingerprint that do not belong to the items themselves
_HEADINGS = ("key", "path", "file")


@dataclass(frozen=True)
class Origin:
    """Where a source of a run is, and the fingerprint of the items it gave."""

    source: str
    root: str | None = None
    labels: str | None = None
    prefix: str = ""
    marks: Mapping[str, str] | None = None

    def is_of(self, source: str, root: str | None) -> bool:
        """Return whether this is the same source."""
        return (self.source, self.root) == (source, root)


@dataclass(frozen=True)
class NewItems:
    """Items of a source that a model does not have yet."""

    dataset: Dataset
    """As the model takes them."""
    keys: list[str]
    at: Indices
    """Their indices in the source as opened."""
    skipped: int
    """Items of the source that the run knows."""
    unreadable: list[tuple[str, str]]


def origins_of(tables: Mapping[str, Any]) -> dict[int, Origin]:
    """Return the sources of a run by number, from its run.toml."""
    train = tables.get("train", {})
    found = {0: Origin(train.get("source", ""), train.get("root"), train.get("labels"), "", tables.get("data"))}
    for number, table in tables.get("update", {}).items():
        if "source" in table:
            found[int(number)] = Origin(
                table["source"], table.get("root"), table.get("labels"), table.get("prefix", ""), table.get("data")
            )
    return found


def new_items(
    model: ADSH,
    items: RunItems,
    origins: Mapping[int, Origin],
    origin: Origin,
    known: frozenset[str],
    *,
    strict: bool = False,
    workers: int | None = None,
    on_read: OnProgress | None = None,
) -> NewItems | None:
    """Return the items of a source that the run does not know; None where it knows all.

    Args:
        model: The model to update.
        items: The items of its database.
        origins: The sources of the run.
        origin: The source of new items.
        known: Keys of items that were removed by an earlier update.
        strict: Stop where a file cannot be read.
        workers: Threads that read files.
        on_read: Called with the number of files read, and of all.

    Returns:
        The new items, prepared for the model.
    """
    dataset = open_source(origin.source, root=origin.root, labels=origin.labels)
    if dataset.labels is None:
        raise InputError(
            f"{origin.source} has no labels to learn from: put the images into a sub-folder per class, or add them to "
            "the index alone with adsh index add"
        )
    keys = [origin.prefix + key for key in dataset.keys[:]]
    there = set(items.keys) | known
    same = [number for number, each in origins.items() if each.is_of(origin.source, origin.root)]
    if 0 in same:
        there |= items.left_out
    clash = next((key for key in keys if key in there), None) if not same else None
    if clash is not None:
        raise InputError(
            f"the model has an item {clash!r} from another source: give --prefix TEXT, so that the items of "
            f"{origin.source} get keys of their own"
        )
    at = np.array([number for number, key in enumerate(keys) if key not in there], dtype=np.int64)
    if not len(at):
        return None
    readable, unreadable = np.arange(len(at)), []
    chosen = dataset.subset(at)
    prepared = resize_for_model(chosen, model.input_shape_, workers)
    if prepared.image_size is not None:
        read = prepare_inputs(chosen, size=prepared.image_size, skip_bad=not strict, workers=workers, on_read=on_read)
        prepared, readable, unreadable = read.usable(), read.readable, read.bad
    usable = at[readable]
    return NewItems(prepared, [keys[i] for i in usable.tolist()], usable, len(keys) - len(at), unreadable)


def old_items(
    model: ADSH,
    items: RunItems,
    origins: Mapping[int, Origin],
    given: Origin | None,
    on_read: OnProgress | None = None,
) -> tuple[Items | None, str]:
    """Return the items of the database before, where they are at hand and the same as then.

    Args:
        model: The model to update.
        items: The items of its database.
        origins: The sources they came from.
        given: A source that has all of them by their keys, in place of these.
        on_read: Called with the number of files read, and of all.

    Returns:
        The items, in their order; or None and the reason.

    Raises:
        InputError: The source that was given lacks an item.
    """
    if given is not None:
        return _by_key(model, items, given), ""
    try:
        parts = [as_items(part, "the database") for part in parts_of(model, items, origins, on_read)]
    except (AdshError, OSError) as problem:
        return None, str(problem)
    return (parts[0] if len(parts) == 1 else JoinedItems(parts)), ""


def parts_of(
    model: HashModel, items: RunItems, origins: Mapping[int, Origin], on_read: OnProgress | None = None
) -> list[Dataset]:
    """Return the items of the database, source by source.

    Args:
        model: The model of the run.
        items: The items of its database.
        origins: The sources they came from.
        on_read: Called with the number of files read, and of all.

    Returns:
        A dataset for each source, prepared for the model.

    Raises:
        AdshError: A source cannot be read, or is not what it was.
    """
    return [_unchanged_part(model, items, number, origins, on_read) for number in np.unique(items.source).tolist()]


def _by_key(model: ADSH, items: RunItems, given: Origin) -> Items:
    dataset = open_source(given.source, root=given.root, labels=given.labels)
    number = {key: position for position, key in enumerate(dataset.keys[:])}
    missing = [key for key in items.keys if key not in number]
    if missing:
        raise InputError(
            f"--old {given.source} lacks {len(missing):,} of the {len(items):,} items of the database, such as "
            f"{missing[0]!r}: give the folder that the model was trained on, or leave --old out"
        )
    chosen = dataset.subset([number[key] for key in items.keys])
    return as_items(resize_for_model(chosen, model.input_shape_), "the items of --old")


def _unchanged_part(
    model: HashModel, items: RunItems, number: int, origins: Mapping[int, Origin], on_read: OnProgress | None
) -> Dataset:
    """Return the items of one source, once their fingerprint is what it was.

    Args:
        model: The model to update.
        items: The items of its database.
        number: Of the source.
        origins: The sources of the run.
        on_read: Called with the number of files read, and of all.
    """
    origin = origins.get(number)
    if origin is None or not origin.marks:
        raise FolderError(f"the run does not say what its source {number} was")
    dataset = open_source(origin.source, root=origin.root, labels=origin.labels)
    first = items.first[number]
    if len(first) and first[-1] >= len(dataset):
        raise InputError(f"{origin.source} has {len(dataset):,} items, fewer than before")
    chosen = dataset.subset(first)
    prepared = resize_for_model(chosen, model.input_shape_)
    if prepared.image_size is not None:
        prepared = prepare_inputs(chosen, size=prepared.image_size, on_read=on_read).dataset
    found, then = fingerprint(as_items(prepared)), origin.marks
    different = differences(found, {name: mark for name, mark in then.items() if not name.startswith(_LABELS_OF)})
    if different:
        raise InputError(f"{origin.source} is not what it was: {'; '.join(different)}")
    at = items.at[items.source == number]
    return prepared.subset(np.searchsorted(first, at))


def keys_named(texts: Sequence[str], items: RunItems, origins: Mapping[int, Origin]) -> list[str]:
    """Return the keys of items that are named by their keys, or by the paths of their files."""
    known = set(items.keys)
    folders = {Path(origin.root or origin.source): origin.prefix for origin in origins.values()}
    keys = []
    for text in texts:
        path = Path(text).absolute()
        below = [prefix + path.relative_to(at).as_posix() for at, prefix in folders.items() if path.is_relative_to(at)]
        keys.append(text if text in known else next((key for key in below if key in known), text))
    return keys


def changes_of(
    model: ADSH, items: RunItems, relabel: Mapping[str, Sequence[str]], rename: Sequence[str], remove: Sequence[str]
) -> Changes:
    """Return the changes that flags and files name, by position.

    Args:
        model: The model to update.
        items: The items of its database.
        relabel: Labels by key.
        rename: OLD=NEW each; OLD= removes the label.
        remove: Keys.
    """
    names = {str(name): name for name in model.known_labels}
    positions = items.positions(list(relabel), "--relabel").tolist()
    labels = ([_as_label(text, names) for text in texts] for texts in relabel.values())
    renames: dict[Hashable, Hashable | None] = {}
    for pair in rename:
        old, equals, new = pair.partition("=")
        if not equals or not old:
            raise InputError(f"--rename {pair}: give OLD=NEW, or OLD= to remove the class")
        renames[names.get(old, old)] = _as_label(new, names) if new else None
    keys = list(dict.fromkeys(remove))
    return Changes(dict(zip(positions, labels, strict=True)), renames, np.sort(items.positions(keys, "--remove")))


def read_relabel(path: Path) -> dict[str, list[str]]:
    """Return the labels of each key from a CSV of key, label and further labels; no label at all takes them away."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, strict=True) if row]
    except FileNotFoundError:
        raise FolderError(f"{path} does not exist: give a .csv with a key and its labels on each line") from None
    except (OSError, ValueError, csv.Error) as problem:
        raise InputError(f"{path} cannot be read as CSV ({problem}): give a key and its labels on each line") from None
    if rows and rows[0][0].strip().lower() in _HEADINGS:
        rows = rows[1:]
    found: dict[str, list[str]] = {}
    for row in rows:
        if row[0] in found:
            raise InputError(f"{path} names {row[0]!r} twice: give each key once, with all of its labels")
        found[row[0]] = [cell.strip() for cell in row[1:] if cell.strip()]
    return found


def read_keys(texts: Sequence[str]) -> list[str]:
    """Return the keys that --remove names: @FILE stands for those in a file, one on a line."""
    keys: list[str] = []
    for text in texts:
        if not text.startswith("@"):
            keys.append(text)
            continue
        try:
            lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as problem:
            raise InputError(f"--remove {text} cannot be read ({problem}): give a text file of keys") from None
        keys += [line.strip() for line in lines if line.strip()]
    return keys


def _as_label(text: str, names: Mapping[str, Hashable]) -> Hashable:
    """Return a label as the model has it: a number where its labels are numbers."""
    if text in names:
        return names[text]
    is_number = names and all(isinstance(name, int) for name in names.values()) and text.isdecimal()
    return int(text) if is_number else text
