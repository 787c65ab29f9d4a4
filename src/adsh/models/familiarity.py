"""How familiar items look to a model: which features are compared, and from which items the statistics are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..data import Items, as_items
from ..labels import LabelSets
from ..learn.familiarity import MOST_ITEMS, Familiarity, measure
from ..networks.frozen import Frozen
from .inference import capture_features, outputs

if TYPE_CHECKING:
    from .adsh import ADSH

Features = NDArray[np.float32]
Indices = NDArray[np.int64]


def measure_familiarity(model: ADSH, items: Items, labels: LabelSets, positions: Indices) -> Familiarity | None:
    """Return what is familiar to a model; None where there are too few items, or a network without features.

    Of items in files, those alone are read that are kept for updates.

    Args:
        model: fitted.
        items: of its database, as the trained part of the network takes them.
        labels: theirs.
        positions: their places in the database.
    """
    if not items.is_array:
        if model.replay_ is None:
            return None
        labels = labels.take(np.searchsorted(positions, model.replay_.positions))
        items = as_items(model.replay_.items)
    if len(items.shape) > 1 and not _has_features(model, items):
        return None
    return measure(labels, lambda chosen: features_of(model, items, chosen), int(model.seed))


def with_new_classes(model: ADSH, known: Familiarity, items: Items, labels: LabelSets) -> Familiarity:
    """Return what is familiar after an update that had few of the old items: the same, and new items with labels.

    Args:
        model: updated.
        known: what was familiar before.
        items: the new ones, as the trained part of the network takes them.
        labels: theirs.
    """
    labelled = np.flatnonzero(~labels.empty[labels.ids])
    if not len(labelled):
        return known
    labelled = np.sort(np.random.default_rng(int(model.seed)).permutation(labelled)[:MOST_ITEMS])
    return known.with_classes(features_of(model, items, labelled), labels.ids[labelled].astype(np.int64))


def features_of(model: ADSH, items: Items, chosen: Indices) -> Features:
    """Return the features of some items: themselves, or the inputs of the last layer for images.

    Args:
        model: fitted.
        items: as the trained part of the network takes them.
        chosen: which of them.
    """
    return items.take(chosen) if len(items.shape) == 1 else last_inputs(model, items, chosen)


def last_inputs(model: ADSH, items: Items, chosen: Indices) -> Features:
    """Return what the last layer is given, (n, d); (n, c) outputs of a network without one.

    Args:
        model: fitted.
        items: as the trained part of the network takes them.
        chosen: which of them.
    """
    network: Any = model.network_.top if isinstance(model.network_, Frozen) else model.network_
    with capture_features(network) as features:
        found = list(outputs(network, items, model.device_.device, model.recipe_, chosen))
    if model.recipe_.flip_tta and len(items.shape) > 1:  # each batch, then its mirror image
        features = [(plain + mirrored) / 2 for plain, mirrored in zip(features[::2], features[1::2], strict=True)]
    inputs: Features = torch.cat(features or found).float().cpu().numpy()
    return inputs


def _has_features(model: ADSH, items: Items) -> bool:
    with capture_features(model.network_) as features:
        list(outputs(model.network_, items, model.device_.device, model.recipe_, range(1)))
    return bool(features)
