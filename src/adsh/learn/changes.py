"""What an update changes: items that come, go or get other labels, and classes that get other names.

The database after an update has the items that stay, in their order, and then the new ones. An item is untouched if its
label set is what it was: its code keeps every bit. Classes may be renamed without touching an item. Where two label
sets become one, the items of the larger keep their codes, and those of the smaller take them over.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..labels import LabelSets, smallest_unsigned
from .learned_codes import NO_SET, LearnedCodes
from .similarity import Indices

Tags = frozenset[Hashable]


@dataclass(frozen=True)
class Changes:
    """What becomes of the items that a model knows.

    Args:
        relabel: other labels for some items: {position in the database: label, or a collection of labels}.
        rename: other names for labels: {"cat": "pet", "dog": "pet"} merges two classes; None removes a label, and the
            items that are left without one.
        remove: positions in the database of items to remove.
    """

    relabel: Mapping[int, Any] = field(default_factory=dict)
    rename: Mapping[Hashable, Hashable | None] = field(default_factory=dict)
    remove: Sequence[int] | NDArray[np.integer[Any]] = ()


@dataclass(frozen=True)
class ChangedDatabase:
    """The database after an update: old items first, new ones after them."""

    kept: Indices  # (k,) positions in the old database, ascending
    labels: LabelSets  # of all n items; the empty set where there is no label
    inherits: Indices  # (K,) the old label set whose code each label set has; NO_SET where the code is to be learned
    untouched: NDArray[np.bool_]  # (k,) items whose label set is what it was


def change_database(
    learned: LearnedCodes, known: LabelSets, changes: Changes, new: LabelSets | None
) -> ChangedDatabase:
    """Work out the database after an update.

    Args:
        learned: the codes of the old database.
        known: its label sets.
        changes: what becomes of its items.
        new: labels of the new items; None for no new items.

    Returns:
        The new database, without codes.
    """
    before = learned.label_set[learned.row_numbers]  # (n,) NO_SET for items without a label
    n = len(before)
    _check_positions("remove", changes.remove, n)
    _check_positions("relabel", list(changes.relabel), n)
    unknown = [name for name in changes.rename if name not in known.names]
    if unknown:
        raise InputError(
            f"rename names {unknown[0]!r}, which no item of the model has: its labels are "
            f"{', '.join(map(str, known.names[:5]))}{', …' if len(known.names) > 5 else ''}"
        )
    number: dict[Tags, int] = {}
    after = np.array([_renamed(known, k, changes.rename, number) for k in range(known.set_count)], dtype=np.int64)
    unlabelled = number.setdefault(frozenset(), len(number))
    sets = np.append(after, unlabelled)[before]  # NO_SET is -1
    stays = (sets != unlabelled) | ~np.append(~known.empty, False)[before]  # the last label of the others was removed
    relabelled = np.array(list(changes.relabel), dtype=np.int64)
    sets[relabelled] = [number.setdefault(_tags(labels), len(number)) for labels in changes.relabel.values()]
    stays[relabelled] = True
    stays[np.asarray(changes.remove, dtype=np.int64)] = False

    same = np.append(after, unlabelled)[before] == sets
    labelled = before[stays & same & (before != NO_SET)]
    untouched = _keepers(after, np.bincount(labelled, minlength=known.set_count), len(number))
    inherits = np.full(len(number), NO_SET, dtype=np.int64)
    inherits[after[untouched]] = np.flatnonzero(untouched)
    same &= np.append(untouched, True)[before]
    kept = np.flatnonzero(stays)
    if new is None and not (sets[kept] != unlabelled).any():
        raise InputError("no item with a label would be left: keep some, or give new ones")
    added = np.empty(0, dtype=np.int64)
    if new is not None:
        of_each = [number.setdefault(frozenset(new.names_of(k)), len(number)) for k in range(new.set_count)]
        added = np.array(of_each, dtype=np.int64)[new.ids]
    _check_kinds(number)
    ids = np.concatenate([sets[kept], added]).astype(smallest_unsigned(len(number)))
    inherits = np.concatenate([inherits, np.full(len(number) - len(inherits), NO_SET, dtype=np.int64)])
    return ChangedDatabase(kept, LabelSets(ids, list(number)), inherits, same[kept])


def _renamed(known: LabelSets, label_set: int, rename: Mapping[Hashable, Any], number: dict[Tags, int]) -> int:
    """Return the number of a label set under the new names.

    Args:
        known: the old label sets.
        label_set: which of them.
        rename: other names for labels; None removes one.
        number: of each label set so far; a new one is added.
    """
    names = (rename.get(name, name) for name in known.names_of(label_set))
    return number.setdefault(frozenset(name for name in names if name is not None), len(number))


def _keepers(after: Indices, count: Indices, sets: int) -> NDArray[np.bool_]:
    """Return which old label sets keep their codes: of those that become one, the one with the most items.

    Args:
        after: (K,) what each old label set becomes.
        count: (K,) items of each.
        sets: label sets there are afterwards.
    """
    keeps = np.zeros(len(after), dtype=bool)
    best = np.full(sets, -1, dtype=np.int64)
    for k in np.argsort(-count, kind="stable"):
        if count[k] and best[after[k]] < 0:
            best[after[k]] = k
            keeps[k] = True
    return keeps


def _tags(labels: Any) -> Tags:
    if labels is None or labels == "":
        return frozenset()
    if isinstance(labels, str | int | np.integer):
        return frozenset([labels.item() if isinstance(labels, np.generic) else labels])
    return frozenset(labels)


def _check_positions(what: str, positions: Any, n: int) -> None:
    array = np.asarray(positions)
    if len(array) and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= n):
        odd = array[(array < 0) | (array >= n)][0] if array.dtype.kind in "iu" else array[0]
        raise InputError(f"{what} names item {odd}: give positions in the database, 0 to {n - 1}")


def _check_kinds(number: dict[Tags, int]) -> None:
    kinds = {type(name) for tags in number for name in tags}
    if {str, int} <= kinds:
        name, other = (next(n for tags in number for n in tags if isinstance(n, kind)) for kind in (str, int))
        raise InputError(f"some labels are text ({name!r}) and others numbers ({other!r}): name them in the same way")
