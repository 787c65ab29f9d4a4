"""Find an existing index, and check it against a model. Imports no torch."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from ..models.fingerprint import ModelId
from ..models.storage_format import INDEX, holds_model
from ..utils.files import find_file
from ..utils.urls import is_address
from . import Index, open_index

MODEL = "model"  # the note with the path of the model


def open_existing(location: str) -> Index:
    """Open the index at this location, or in the model folder there; raise if it does not exist."""
    if not is_address(location) and not Path(location).exists():
        raise InputError(f"there is no index at {location}: create one with adsh index build {location} --model FOLDER")
    return open_index(inside(location))


def inside(location: str) -> str:
    """Return the location of the index inside a model folder if that is what was given, else the location itself."""
    if is_address(location) or not holds_model(Path(location)):
        return location
    path = find_file(Path(location), INDEX)  # also in the moment in which the model is replaced
    return str(path) if path.is_dir() else location


def check_model(index: Index, model: ModelId, at: object, then: str) -> None:
    """Raise if the index holds codes of another model; an update of the model it was built with can be used.

    Args:
        index: the index.
        model: the model.
        at: where the model is, for the message.
        then: what to do, for the message.
    """
    if index.model is None or model.descends_from(index.model):
        return
    if model.fingerprint in index.lineage:
        raise InputError(
            f"the model in {at} was updated since, and the index follows the newer one ({model.fingerprint[:12]} and "
            f"{index.model[:12]}): use the newer model"
        )
    raise InputError(
        f"the model in {at} is not the one whose codes the index holds ({model.fingerprint[:12]} and "
        f"{str(index.model)[:12]}): codes of two models cannot be compared; {then}"
    )
