"""A saved model as an encoder, run by torch."""

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
from ..models.fingerprint import identify
from ..models.label_codes import code_of_labels
from ..models.protocol import HashModel, familiarity_of
from .base import Encoding


class TorchEncoder:
    """The model saved in a folder, encoding images as `adsh search` does."""

    def __init__(self, folder: Path, device: str | None = None) -> None:
        self._model: HashModel = load(folder, device=device)
        self.bits = int(self._model.bits)
        self.fingerprint, self.lineage = identify(folder)
        self.vector_size = 0
        self._shape = tuple(self._model.input_shape_)
        self.size = self._shape[0] if len(self._shape) == 3 and self._shape[0] == self._shape[1] else 0
        if len(self._shape) == 3:  # the first pass is the slowest, and shows how wide the vectors are
            vectors = self.encode([Image.new("RGB", (self._shape[1], self._shape[0]))]).vectors
            self.vector_size = 0 if vectors is None else vectors.shape[1]

    def encode(self, images: Sequence[Image.Image]) -> Encoding:
        """Return the codes, outputs and vectors of images, from one pass through the network."""
        if len(self._shape) != 3:
            raise InputError(f"the model takes {self._shape[0]} features an item, not images: search by code or by key")
        items = resize_for_model(SequenceDataset(list(images), label=False, name="the images"), self._shape)
        if self._model.has_bounded_outputs:
            outputs, vectors = self._model.outputs_with_features(items)
            return Encoding(pack(outputs), outputs, vectors, familiarity_of(self._model, items, vectors))
        codes = self._model.encode(items)
        return Encoding(codes, unpack(codes, self.bits).astype(np.float32), None)

    def code_for(self, labels: Sequence[str]) -> bytes | None:
        """Return the packed code of an item with these labels; None where the model does not know one of them."""
        return code_of_labels(self._model, labels)

    def close(self) -> None:
        """Do nothing: the model holds no files open."""
