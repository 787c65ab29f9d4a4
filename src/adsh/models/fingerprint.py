"""The fingerprint that ties an index to a model: the SHA-256 of its weights. Needs no torch for a saved model."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..utils.files import digest, find_whole
from ..utils.reading import read_json
from .storage_format import ARRAYS, CONFIG, FUNCTION_FORMAT, WEIGHTS, format_of


class ModelId(NamedTuple):
    """A model by its fingerprint, and the models that it descends from by updates."""

    fingerprint: str
    lineage: tuple[str, ...] = ()  # oldest first

    def descends_from(self, fingerprint: str) -> bool:
        """Return whether its codes can be compared with those of this earlier model, or of itself."""
        return fingerprint == self.fingerprint or fingerprint in self.lineage


def identify(model: Any) -> ModelId:
    """Return what `model_fingerprint` does, with the lineage of a model folder or of a model in memory."""
    if isinstance(model, ModelId):
        return model
    lineage: Any = getattr(model, "lineage_", ())
    if isinstance(model, str | Path) and format_of(Path(model)) is not None:
        lineage = read_json(find_whole(Path(model)) / CONFIG).get("lineage", ())
    return ModelId(model_fingerprint(model), tuple(map(str, lineage)))


def model_fingerprint(model: Any) -> str:
    """Return the fingerprint of a model folder or of a model in memory; any other text stands for itself."""
    if isinstance(model, str | Path):
        folder = Path(model)
        storage_format = format_of(folder)
        if storage_format is FUNCTION_FORMAT:
            return digest(find_whole(folder) / ARRAYS)
        if storage_format is not None:
            config = read_json(find_whole(folder) / CONFIG)
            return str(config["files"][WEIGHTS]["sha256"])
        if isinstance(model, Path) or folder.is_dir() or not model.strip():
            raise InputError(
                f"model={str(model)!r} holds no saved model: give a model folder, a model or a name for it"
            )
        return model
    network = getattr(model, "network_", None)
    if network is None:
        raise InputError(
            f"model={model!r:.80} has no learned network: give a fitted model, its folder or a name for it"
        )
    from ..utils.tensors import as_bytes

    return hashlib.sha256(as_bytes(network.state_dict())).hexdigest()
