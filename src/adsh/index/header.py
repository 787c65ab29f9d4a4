"""What an index is: its format, its bits, the model behind its codes, and how its vectors are made."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

import numpy as np

from .. import __version__
from ..errors import FolderError, InputError
from ..hamming.small_vectors import Projection

FORMAT, FORMAT_VERSION = "adsh-index", 1


@dataclass(frozen=True)
class About:
    """Decided when an index is made."""

    bits: int
    model: str | None = None
    format_version: int = FORMAT_VERSION

    def to_json(self) -> bytes:
        """As it is stored."""
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()

    @classmethod
    def from_json(cls, stored: bytes | None, index: object, newest: int = FORMAT_VERSION) -> About:
        """What was stored, where this version of adsh can read it."""
        told = json.loads(stored or b"{}")
        if told.get("format") != FORMAT:
            raise FolderError(f"{index} is not an adsh index: give what open_index made")
        version = told["format_version"]
        if version > newest:
            raise FolderError(
                f"{index} has format version {version}, and adsh {__version__} reads 1 to {newest}: upgrade adsh"
            )
        return cls(told["bits"], told["model"], version)

    def with_model(self, model: str, items: int, index: object) -> About:
        """The same with this model's fingerprint, where the items cannot be another model's."""
        if model == self.model:
            return self
        if self.model is not None:
            raise InputError(
                f"{index} holds codes of model {self.model[:12]}, not of {model[:12]}: codes of two models cannot be "
                "compared; use that model, or another index"
            )
        if items:
            raise InputError(
                f"{index} holds {items} codes of a model that was not recorded: open it without model=, or add to a "
                "new index"
            )
        return replace(self, model=model)


def save_projection(projection: Projection) -> bytes:
    """A projection as bytes."""
    shape = np.array(projection.components.shape, dtype="<i8").tobytes()
    parts = (
        projection.mean.astype("<f4"),
        projection.components.astype("<f4"),
        np.array(projection.scale, dtype="<f8"),
    )
    return shape + b"".join(part.tobytes() for part in parts)


def load_projection(stored: bytes | None) -> Projection | None:
    """What `save_projection` gave; None for None."""
    if stored is None:
        return None
    wide, narrow = np.frombuffer(stored, "<i8", 2).tolist()
    numbers = np.frombuffer(stored, "<f4", wide + wide * narrow, 16)
    scale = float(np.frombuffer(stored, "<f8", 1, 16 + 4 * len(numbers))[0])
    return Projection(numbers[:wide], numbers[wide:].reshape(wide, narrow), scale)
