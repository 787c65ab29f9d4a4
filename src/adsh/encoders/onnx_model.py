"""An exported model behind the members of a model that searching and indexing read. Needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.items import as_items
from ..errors import InputError
from ..hamming.bits import Codes
from ..models.fingerprint import ModelId
from .base import Encoding
from .onnx import OnnxEncoder

_AT_ONCE = 256  # items read before they are encoded


class OnnxModel:
    """A model in a folder that `adsh export` wrote, as an `ItemEncoder`.

    Args:
        folder: The exported model.
        device: Where it runs: onnxruntime uses the CPU.
    """

    codes_labels = False  # what was learned of labels is not exported

    def __init__(self, folder: Path, device: str | None = None) -> None:
        if device not in (None, "auto", "cpu"):
            raise InputError(f"--device {device}: an exported model runs on the CPU, leave it out")
        self._encoder = OnnxEncoder(folder)
        about = self._encoder.about
        self.bits, self.id = about.bits, ModelId(about.fingerprint, about.lineage)
        self.input_shape_, self.known_labels = about.shape, about.classes
        self.has_bounded_outputs, self.familiarity_ = about.has_bounded_outputs, self._encoder.familiarity

    def encode_with_features(self, X: Any) -> tuple[Codes, NDArray[np.float32] | None]:
        """Return packed codes and, from the same pass, (n, d) features; None where there is no last layer."""
        encoding = self._encode(X)
        return encoding.codes, encoding.vectors

    def outputs_with_features(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Return the outputs and, from the same pass, (n, d) features."""
        encoding = self._encode(X)
        return encoding.outputs, encoding.vectors

    def code_for(self, labels: Any) -> Codes:
        """Refuse: an export has no codes of labels."""
        raise InputError("an exported model has no codes of labels: encode the items themselves, or use the model")

    def _encode(self, X: Any) -> Encoding:
        items = as_items(X, "the items")
        if items.shape != self.input_shape_:
            shape, expected = (" x ".join(map(str, one)) for one in (items.shape, self.input_shape_))
            raise InputError(
                f"an item has shape {shape}, but the model takes {expected}: give items as it was fitted on"
            )
        parts = [
            self._encoder.encode_inputs(items.take(np.arange(start, min(start + _AT_ONCE, len(items)))))
            for start in range(0, len(items), _AT_ONCE)
        ]
        vectors = [part.vectors for part in parts if part.vectors is not None]
        return Encoding(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.outputs for part in parts]),
            np.concatenate(vectors) if vectors else None,
        )
