"""A saved model as a coder, by torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from ..data.match_input import resize_for_model
from ..data.sequence import SequenceDataset
from ..errors import InputError
from ..hamming.bits import pack, unpack
from ..models.adsh import load
from ..models.fingerprint import model_fingerprint
from ..models.protocol import HashModel
from .encoding import Coded


class TorchCoder:
    """The model in a folder, as `adsh search` uses it."""

    def __init__(self, folder: Path, device: str | None = None) -> None:
        self._model: HashModel = load(folder, device=device)
        self.bits = int(self._model.bits)
        self.fingerprint = model_fingerprint(folder)
        self.vector_size = 0
        self._shape = tuple(self._model.input_shape_)
        self.size = self._shape[0] if len(self._shape) == 3 and self._shape[0] == self._shape[1] else 0
        if len(self._shape) == 3:  # the first pass is the slowest, and shows how wide the vectors are
            vectors = self.code([Image.new("RGB", (self._shape[1], self._shape[0]))]).vectors
            self.vector_size = 0 if vectors is None else vectors.shape[1]

    def code(self, images: Sequence[Image.Image]) -> Coded:
        """The codes, outputs and vectors of some pictures in one pass."""
        if len(self._shape) != 3:
            raise InputError(
                f"the model takes {self._shape[0]} features an item, not pictures: search by code or by key"
            )
        given = resize_for_model(SequenceDataset(list(images), label=False, name="the pictures"), self._shape)
        if self._model.has_bounded_outputs:
            outputs, vectors = self._model.outputs_with_features(given)
            return Coded(pack(outputs), outputs, vectors)
        codes = self._model.encode(given)
        return Coded(codes, unpack(codes, self.bits).astype(np.float32), None)

    def close(self) -> None:
        """Nothing is held open."""
