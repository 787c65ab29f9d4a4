"""Update a fitted ADSH: codes of what is new or has other labels, and the network for queries; all other codes stay.

The network goes on from its weights, on new items and on those of the database that are at hand: all of them where the
caller has them, else the few that were kept beside the model (`replay`). A head of bits learns the new codes by eq. (9)
with the old ones held (`learn.growing_table`). A posterior head gets a score for each new label set, and codes for them
are learned beside those that there are (`learn.class_table`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config import Recipe
from ..data import Items, as_items
from ..data.fingerprint import Fingerprint, fingerprint, of_labels
from ..data.items import labels_of
from ..data.joined_items import JoinedItems, SomeItems
from ..data.loader import DeviceLoader
from ..errors import AdshWarning, InputError
from ..hamming.bits import Codes
from ..labels import LabelSets, check_columns
from ..learn.changes import ChangedDatabase, Changes, change_database
from ..learn.class_table import ClassTable
from ..learn.learned_codes import LearnedCodes, NewLabels
from ..networks.frozen import Frozen
from ..networks.mlp import MLP
from ..networks.posterior import Posterior
from ..train.feature_cache import features_once
from ..train.state import Loader
from .fingerprint import model_fingerprint
from .fit_inputs import labels_for
from .fitting import FitData, FitOptions, Fitting
from .growth import Growth, grow_model, head_weights
from .inference import capture_features, encode, outputs
from .replay import Replay, keep_some

if TYPE_CHECKING:
    from .adsh import ADSH

Indices = NDArray[np.int64]
_FEWEST = 2  # labelled items that a network can go on from
_RATE_OF_FEW = 0.3  # times the learning rate of a fit, where few of the old items are at hand: .91 for .89 of MAP


@dataclass(frozen=True)
class OldItems:
    """Items of the old database that are at hand."""

    items: Items
    positions: Indices  # (k,) ascending: their places in the old database
    are_features: bool = False  # what a frozen network computed of them


def update(
    model: ADSH, Y: Any, labels: Any, changes: Changes, old: Any, outer: int | None, options: FitOptions
) -> None:
    """Update a model in place, as `ADSH.update` describes; where it fails, the model is as it was.

    Args:
        model: fitted on labels, without separate queries.
        Y, labels: new items and their labels; None for none.
        changes: what becomes of the items that the model has.
        old: the items of the database before; None for those that the model kept.
        outer: outer iterations; None for half of those of a fit.
        options: as for `fit`.
    """
    new = _new_items(model, Y, labels)
    if new is None and not (changes.relabel or changes.rename or len(changes.remove)):
        raise InputError("nothing to update: give new items with labels, or changes")
    former = model._new_labels
    if former is None or former.queries.names != former.database.names:
        raise InputError("an update needs a model fitted on labels, without separate queries: fit a new one")
    at_hand = _old_items(model, old)
    database = change_database(model.code_table_, former.database, changes, new[1] if new else None)
    new_items = None if new is None else new[0]
    marks = _marks(model, database, new_items)
    if isinstance(model.network_, Frozen):
        new_items, at_hand = _frozen_features(model, model.network_, new_items, at_hand, options)
    items, positions = _at_hand(database, new_items, at_hand)
    growth = grow_model(model, database, positions)
    recipe = _recipe(model, growth, outer, has_all=old is not None)
    growth.codes.target = recipe.target(model.bits)
    network, history = growth.network, model.history_
    trained: Any = network.top if isinstance(network, Frozen) else network
    if items is not None and growth.table.num_sampleable >= _FEWEST:
        data = FitData(items, items, growth.table, recipe, marks, None)
        history = _Updating(model, data, options, trained, positions).run().history
    else:
        _finish_untrained(trained, growth)
    device = model.device_.device
    network.to(device).eval()
    codes = _codes_without_labels(model, database, trained, new_items)
    learned = LearnedCodes.of(growth.codes, codes)
    labels = NewLabels.of(growth.codes, learned)
    if labels is None:  # no code was learned: what led to the others is as it was
        assert growth.codes.label_sets is not None
        labels = NewLabels(learned, growth.codes.label_sets, former.queries, former.last)
    model.lineage_ = (*model.lineage_, marks["updated from"])
    model.__dict__.pop("features_", None)  # of the database before
    model.network_, model.code_table_, model._new_labels = network, learned, labels
    model.recipe_, model.history_, model.fingerprint_ = recipe, history, marks
    model.replay_ = None
    if items is not None:
        model.replay_ = choose_replay(model, items, database.labels.take(positions), positions)


def choose_replay(model: ADSH, items: Items, labels: LabelSets, positions: Indices) -> Replay | None:
    """Choose the items to keep beside a fitted model.

    Args:
        model: whose network says what items are typical.
        items: to choose from, as the trained part of the network takes them.
        labels: theirs.
        positions: their places in the database.
    """
    network: Any = model.network_.top if isinstance(model.network_, Frozen) else model.network_
    recipe = model.recipe_.replace(flip_tta=False)

    def features_of(chosen: Indices) -> NDArray[np.float32]:
        with capture_features(network) as features:
            found = list(outputs(network, items, model.device_.device, recipe, chosen))
        return torch.cat(features or found).float().cpu().numpy()

    kept = keep_some(items, labels, model.keep, features_of, int(model.seed))
    return None if kept is None else Replay(kept.items, positions[kept.positions])


def _new_items(model: ADSH, Y: Any, labels: Any) -> tuple[Items, LabelSets] | None:
    """Return new items and their labels, checked; None for none."""
    if Y is None:
        if labels is not None:
            raise InputError("labels without items: give both, or changes for items of the database")
        return None
    labels = labels_of(Y, labels)
    if labels is None:
        raise InputError("give the labels of the new items too: update(Y, labels)")
    items = model._new_items(Y)
    if items.shape != model.input_shape_:
        raise InputError(f"new items have shape {items.shape}, but the model was fitted on {model.input_shape_}")
    check_columns(labels, "labels", len(model.known_labels), "the database has")
    return items, labels_for(items, labels, "labels", "Y")


def _old_items(model: ADSH, old: Any) -> OldItems | None:
    """Return the items of the database that are at hand."""
    if old is not None:
        items, n = model._new_items(old), len(model.code_table_)
        if len(items) != n:
            raise InputError(f"old has {len(items)} items, but the database has {n}: give all of them, in their order")
        return OldItems(items, np.arange(n))
    if model.replay_ is None:
        return None
    return OldItems(as_items(model.replay_.items), model.replay_.positions, isinstance(model.network_, Frozen))


class _Updating(Fitting):
    """A fit that goes on from a trained network, on items known by their places in the database."""

    def __init__(self, model: ADSH, data: FitData, options: FitOptions, network: nn.Module, positions: Indices) -> None:
        super().__init__(model, data, options)
        self._start, self._positions = network, positions

    def _network(self) -> nn.Module:
        return self._start

    def _prepare(self, trained: nn.Module, items: DeviceLoader) -> Loader:
        for layer in trained.modules():
            if isinstance(layer, MLP):
                layer.set_noise_for(self.data.table.points)
        return _ByPosition(items, self._positions)


class _ByPosition:
    """A loader of items by their places in the database, of which some are at hand."""

    def __init__(self, items: DeviceLoader, positions: Indices) -> None:
        self._items, self._positions = items, positions
        self._on_device = torch.as_tensor(positions, device=items.device)

    @property
    def on_device(self) -> bool:
        """Whether all items are on the device."""
        return self._items.on_device

    def __call__(self, indices: Any) -> Tensor:
        """Return the items at these places."""
        return self._items(self._numbers(indices))

    def epoch(self, batches: Iterable[Any]) -> Iterator[Tensor]:
        """Yield the items of each batch in turn, reading ahead."""
        return self._items.epoch(self._numbers(batch) for batch in batches)

    def _numbers(self, places: Any) -> Any:
        if isinstance(places, Tensor):
            return torch.searchsorted(self._on_device, places)
        return np.searchsorted(self._positions, places)


def _recipe(model: ADSH, growth: Growth, outer: int | None, *, has_all: bool) -> Recipe:
    """Return the values of the update: those of a fit, with half of its outer iterations.

    Args:
        model: the model.
        growth: what is trained.
        outer: outer iterations, where they are given.
        has_all: whether all items of the database before are at hand.
    """
    num_sampleable = max(1, growth.table.num_sampleable)
    fit = model._recipe(growth.codes.label_sets, num_sampleable, model.recipe_.head)
    return fit.replace(
        outer=ceil(fit.outer / 2) if outer is None else outer,
        lr=fit.lr * (1.0 if has_all else _RATE_OF_FEW),
        samples=min(fit.samples, num_sampleable),
    )


def _at_hand(database: ChangedDatabase, new: Items | None, old: OldItems | None) -> tuple[Items | None, Indices]:
    """Return the items that can be read, and their places in the new database, ascending."""
    parts, positions = [], []
    if old is not None:
        place = np.searchsorted(database.kept, old.positions)
        stays = np.flatnonzero(np.append(database.kept, -1)[place] == old.positions)
        if len(stays):
            parts.append(old.items if len(stays) == len(old.positions) else SomeItems(old.items, stays))
            positions.append(place[stays])
    if new is not None:
        parts.append(new)
        positions.append(np.arange(len(database.kept), len(database.labels)))
    if not parts:
        return None, np.empty(0, dtype=np.int64)
    return parts[0] if len(parts) == 1 else JoinedItems(parts), np.concatenate(positions)


def _frozen_features(
    model: ADSH, network: Frozen, new: Items | None, old: OldItems | None, options: FitOptions
) -> tuple[Items | None, OldItems | None]:
    """Return features in place of images: what the part that is trained takes."""
    path = None if options.features is None else Path(options.features)
    if new is not None:
        new = as_items(features_once(network, new, model.device_, path=path))
    if old is not None and not old.are_features:
        sidecar = None if path is None else path.with_name(f"{path.stem}.old{path.suffix}")
        features = features_once(network, old.items, model.device_, path=sidecar)
        old = OldItems(as_items(features), old.positions, True)
    return new, old


def _finish_untrained(trained: nn.Module, growth: Growth) -> None:
    """Give new label sets codes without a network that has seen them, since no item is at hand."""
    warnings.warn(
        "no labelled items are at hand, neither new nor kept ones: codes change, and the network does not; give the "
        "items of the database as old=",
        AdshWarning,
        stacklevel=4,
    )
    if isinstance(trained, Posterior) and isinstance(growth.table, ClassTable):
        votes = growth.table.finish(head_weights(trained), None)
        trained.codes.copy_(torch.as_tensor(votes))


def _codes_without_labels(
    model: ADSH, database: ChangedDatabase, trained: nn.Module, new: Items | None
) -> Codes | None:
    """Return codes of the items without a label: those of old ones as they were, of new ones by the network."""
    if model.unlabelled != "network":
        return None
    ids, old = database.labels.ids, len(database.kept)
    empty = database.labels.empty[ids]
    table = model.code_table_
    codes = [table.packed[table.row_numbers[database.kept[empty[:old]]]]]
    without = np.flatnonzero(empty[old:])
    if new is not None and len(without):
        codes.append(encode(trained, new, model.device_.device, model.recipe_, without))
    return np.concatenate(codes)


def _marks(model: ADSH, database: ChangedDatabase, new: Items | None) -> Fingerprint:
    """Return what an update is of: the model before, the new items, and the labels of all."""
    marks = {"updated from": model_fingerprint(model), "labels": of_labels(database.labels)}
    return marks if new is None else marks | fingerprint(new, None, "new items")
