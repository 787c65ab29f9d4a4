"""Warn of bits that are too few for the classes, before training, and of classes that share a code, after it."""

from __future__ import annotations

import warnings
from math import log2

import numpy as np

from ..errors import AdshWarning
from ..evaluate.classes import nearest_classes
from ..labels import LabelSets, advised_bits
from ..models.protocol import HashModel

_KEEP_APART = ("modern", "fast")  # presets that choose a head by the classes
_FEWEST = 2.0  # bits for each doubling of the classes, half of those advised; beyond, more gain hundredths of MAP


def warn_of_few_bits(bits: int, labels: LabelSets) -> None:
    """Warn where the classes need more bits, and say how many are advised. Several labels an item have no rule."""
    classes = _num_classes(labels)
    advised = advised_bits(classes)
    if classes > 1 and bits < _FEWEST * log2(classes):
        warnings.warn(
            f"{bits} bits are few for {classes:,} classes, so that some get near or equal codes: --bits {advised} is "
            "advised",
            AdshWarning,
            stacklevel=3,
        )


def warn_of_shared_codes(model: HashModel, labels: LabelSets) -> None:
    """Warn of classes that ended with one code: a labelled database cannot tell them apart."""
    if not model.codes_labels or not _num_classes(labels):
        return
    shared = [pair for pair in nearest_classes(model.database_codes_, labels, model.bits) if pair.distance == 0]
    if not shared:
        return
    others = f" and {len(shared) - 1:,} more pairs of classes" if len(shared) > 1 else ""
    advised = advised_bits(_num_classes(labels))
    more = f"--bits {max(advised, 2 * model.bits)}"
    remedy = f"give {more}"
    if model.preset not in (None, *_KEEP_APART):
        also = f"{more} and " if advised > model.bits else ""
        remedy = f"give {also}--preset modern, which chooses what keeps classes apart"
    warnings.warn(
        f"{shared[0].first} and {shared[0].second}{others} share a code, so that their labelled items cannot be told "
        f"apart: {remedy}",
        AdshWarning,
        stacklevel=3,
    )


def _num_classes(labels: LabelSets) -> int:
    """Return how many classes have items; 0 where an item has several labels."""
    if (np.diff(labels.starts) > 1).any():
        return 0
    return int(((labels.sizes > 0) & ~labels.empty).sum())
