"""What an update trains: the network with an output for each label set there is now, and the table beside it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ..config import POSTERIOR
from ..hamming.bits import unpack
from ..labels import LabelSets
from ..learn.changes import ChangedDatabase
from ..learn.class_table import ClassTable
from ..learn.growing_table import GrowingTable
from ..learn.learned_codes import NO_SET, LearnedCodes
from ..learn.rows import Rows
from ..networks.grow import Outputs, grow, posterior_of

if TYPE_CHECKING:
    from .adsh import ADSH

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Growth:
    """A network that goes on from an earlier fit, and the tables of the database as it is now."""

    network: nn.Module  # on the CPU
    codes: GrowingTable  # of the database
    table: GrowingTable | ClassTable  # what is learned beside the network: the codes themselves, or classes


def grow_model(model: ADSH, database: ChangedDatabase, at_hand: Indices) -> Growth:
    """Return what to train for a changed database.

    Args:
        model: fitted.
        database: as it is now.
        at_hand: the positions in it of items that can be read, ascending.
    """
    if model.recipe_.head == POSTERIOR:
        return _with_posterior(model, database, at_hand)
    codes = _held_codes(model, database, at_hand)
    return Growth(copy.deepcopy(model.network_).cpu(), codes, codes)


def _with_posterior(model: ADSH, database: ChangedDatabase, at_hand: Indices) -> Growth:
    """Return a network with a score for each label set; those that are new have no code yet."""
    labels, known = database.labels, model.label_names_["database"]
    codes = GrowingTable(labels, model.bits, at_hand)
    sets = codes.rows.label_set
    former = model.code_table_.label_set
    output = {int(label_set): number for number, label_set in enumerate(former[former != NO_SET])}
    former_sets = np.array([output.get(int(label_set), -1) for label_set in database.inherits[sets]], dtype=np.int64)
    table = ClassTable(codes, int(model.seed))
    of_labels = _scores_labels(model)
    former_labels = [known.index(name) if name in known else -1 for name in labels.names]
    if not of_labels:  # it scored single labels, one output for each
        former_labels = [output.get(_set_of(model, number), -1) if number >= 0 else -1 for number in former_labels]
    outputs = Outputs(
        table.members(),
        codes.rows.count,
        former_sets,
        np.array(former_labels, dtype=np.int64),
        several=of_labels or table.several_labels,
    )
    network = grow(model.network_, model.bits, model.input_shape_, outputs)
    table.keep_votes(posterior_of(network).codes.numpy().copy())
    table.sample_among(at_hand)
    return Growth(network, codes, table)


def _scores_labels(model: ADSH) -> bool:
    """Return whether the network scores labels, and label sets by these."""
    spec: Any = model.network_.adsh_spec
    return "label_sets" in spec["options"]


def _set_of(model: ADSH, label: int) -> int:
    """Return the label set of a label alone."""
    assert model._new_labels is not None
    database = model._new_labels.database
    starts, tags = database.starts, database.tags
    alone = np.flatnonzero(np.diff(starts) == 1)
    found = alone[tags[starts[alone]] == label]
    return int(found[0]) if len(found) else -1


def _held_codes(model: ADSH, database: ChangedDatabase, at_hand: Indices) -> GrowingTable:
    """Return the table of codes: those of untouched items are held, others start at the code of their labels."""
    labels, learned = database.labels, model.code_table_
    sets, old = labels.set_count, len(database.kept)
    is_new = np.ones(len(labels), dtype=bool)
    is_new[:old] = ~database.untouched
    names: Sequence[Any] = [labels.names_of(k) for k in range(sets)]
    ids = labels.ids.astype(np.int64) + sets * is_new
    table = GrowingTable(LabelSets(ids, [*names, *names]), model.bits, at_hand, model.unlabelled)

    numbers = np.full(len(labels), -1, dtype=np.int64)
    untouched = np.flatnonzero(~is_new)
    rows, number = np.unique(learned.row_numbers[database.kept[untouched]], return_inverse=True)
    label_set = _sets_now(database, learned, rows)
    numbers[untouched] = number
    held = unpack(learned.packed[rows], model.bits)

    new_sets = np.unique(ids[is_new])
    if model.unlabelled == "network":
        new_sets = new_sets[~labels.empty[new_sets - sets]]
        numbers[untouched[label_set[number] == NO_SET]] = -1
    starts = model.code_for([names[k - sets] for k in new_sets]) if len(new_sets) else learned.packed[:0]
    place = np.full(2 * sets, -1, dtype=np.int64)
    place[new_sets] = len(rows) + np.arange(len(new_sets))
    numbers[is_new] = place[ids[is_new]]

    all_sets = np.concatenate([label_set, new_sets])
    all_codes = np.concatenate([held, unpack(starts, model.bits)])
    used = all_sets != NO_SET
    renumber = np.append(np.cumsum(used) - 1, used.sum())  # -1, no row, is the last
    kept_rows = Rows(all_sets[used], all_codes[used], np.ones(int(used.sum()), dtype=np.int64))
    table.start_from(kept_rows, renumber[numbers], fixed_sets=sets)
    return table


def _sets_now(database: ChangedDatabase, learned: LearnedCodes, rows: Indices) -> Indices:
    """Return the present label set of each of these rows of untouched items; NO_SET where it has none."""
    now = np.full(int(learned.label_set.max()) + 2, NO_SET, dtype=np.int64)  # the last is that of NO_SET itself
    inherited = np.flatnonzero(database.inherits != NO_SET)
    now[database.inherits[inherited]] = inherited
    sets: Indices = now[learned.label_set[rows]]
    return sets
