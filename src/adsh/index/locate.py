"""An index that is there, found and checked against a model. No torch here."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from ..models.storage_format import INDEX, holds_model
from ..utils.urls import is_address
from . import Index, open_index

MODEL = "model"  # the note that says where the model lies


def open_existing(location: str) -> Index:
    """The index at this place, or in the folder of a model there; it must be there."""
    if not is_address(location) and not Path(location).exists():
        raise InputError(f"there is no index at {location}: make one with adsh index build {location} --model FOLDER")
    return open_index(inside(location))


def inside(location: str) -> str:
    """The index that lies in a model's folder, where that is what was given."""
    held = Path(location) / INDEX
    return str(held) if not is_address(location) and holds_model(Path(location)) and held.is_dir() else location


def check_model(index: Index, fingerprint: str, at: object, then: str) -> None:
    """Raises where the index holds codes of another model than the one at this place."""
    if index.model not in (None, fingerprint):
        raise InputError(
            f"the model in {at} is not the one whose codes the index holds ({fingerprint[:12]} and "
            f"{str(index.model)[:12]}): codes of two models cannot be compared; {then}"
        )
