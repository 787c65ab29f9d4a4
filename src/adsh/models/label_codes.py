"""Codes for labels as texts, as metadata and corrections name them."""

from __future__ import annotations

from collections.abc import Sequence

from .protocol import ItemEncoder


def code_of_labels(model: ItemEncoder, labels: Sequence[str]) -> bytes | None:
    """Return the packed code of an item with these labels; None where the model does not know one of them."""
    if not model.codes_labels or not labels:
        return None
    names = {str(name): name for name in model.known_labels}
    if not names.keys() >= set(labels):
        return None
    from ..labels import LabelSets

    code: bytes = model.code_for(LabelSets([0], [[names[label] for label in labels]]))[0].tobytes()
    return code
