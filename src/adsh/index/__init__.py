"""Indexes: put coded items in, find the nearest, take them out. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import InputError
from .base import Index
from .matches import Item, Match, Matches

__all__ = ["Index", "Item", "Match", "Matches", "open_index"]


def open_index(location: str | Path, bits: int | None = None, *, model: Any = None, timeout: float = 10.0) -> Index:
    """The index at this place, made where it is missing.

    Args:
        location: a folder.
        bits: the length of the codes; may be left out where the index exists.
        model: what made the codes: a model folder, a fitted model, or a name for one of another kind. Its fingerprint
            is recorded, and another model's codes are refused from then on.
        timeout: how many seconds a write waits for that of another process.
    """
    if "://" in str(location):
        raise InputError(f"{str(location).split('://')[0]}:// is not a kind of index here: give a folder")
    from .embedded import EmbeddedIndex
    from .fingerprint import model_fingerprint

    fingerprint = None if model is None else model_fingerprint(model)
    return EmbeddedIndex(Path(location), bits, fingerprint, timeout)
