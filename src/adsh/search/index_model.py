"""The model that an index belongs to: the index stores its fingerprint, and a note of its folder.

An exported model is accepted in its place, and then no torch is needed.
"""

from __future__ import annotations

from pathlib import Path

from ..encoders.onnx_model import OnnxModel
from ..encoders.onnx_package import is_export
from ..encoders.onnx_package import read as read_export
from ..errors import InputError
from ..index import Index, open_index
from ..index.locate import MODEL, check_model, inside
from ..models.fingerprint import ModelId, identify
from ..models.info import model_info
from ..models.protocol import ItemEncoder
from ..models.storage_format import holds_model


def open_for_model(location: str, model: Path) -> Index:
    """Open the index at a location for the codes of the model in a folder; create it where it is missing."""
    if is_export(model):
        about = read_export(model)[1]
        known = ModelId(about.fingerprint, about.lineage)
        index = open_index(inside(location), bits=about.bits, model=known, create=True)
    else:
        index = open_index(inside(location), bits=model_info(model)["bits"], model=model, create=True)
    if index.get_note(MODEL) is None:
        index.set_note(MODEL, str(model.absolute()))
    return index


def load_model_of(index: Index, folder: Path | None, device: str | None, *, newest: bool = False) -> ItemEncoder:
    """Load the model whose codes an index holds; torch is imported for one that is not an export.

    Args:
        index: An open index.
        folder: The model's folder; by default the one that the index lies in, or else the one it was built with.
        device: Where the model runs.
        newest: Refuse a model that was updated since the index followed it.

    Returns:
        The model, on the device.

    Raises:
        InputError: The folder is not known or not there, or holds another model than the index was built with.
    """
    path = index.get_note(MODEL) if folder is None else str(folder)
    parent = None if index.folder is None else index.folder.absolute().parent
    if folder is None and parent is not None and index.model is not None and _descends(parent, index.model):
        path = str(parent)  # they may have been moved together
    if path is None or not Path(path).exists():
        state = (
            "does not say which model its codes are of"
            if path is None
            else f"was built with the model in {path}, which does not exist"
        )
        raise InputError(f"the index {state}: give --model FOLDER")
    instead = "give --model FOLDER, or another index"
    if is_export(Path(path)):
        exported = OnnxModel(Path(path), device)
        check_model(index, exported.id, path, instead)
        return exported
    known = identify(Path(path))
    check_model(index, known, path, instead)
    if newest and index.model not in (None, known.fingerprint):
        raise InputError(f"the model in {path} was updated since: adsh index follow {index.location} {path}")
    from ..models.adsh import load  # which imports torch

    model: ItemEncoder = load(path, device=device)
    return model


def _descends(folder: Path, fingerprint: str) -> bool:
    """Return whether the folder holds this model, or an update of it."""
    return holds_model(folder) and identify(folder).descends_from(fingerprint)
