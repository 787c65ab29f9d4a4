"""The header of an index: its format version, the length of its codes, and the model that computed them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

import numpy as np

from .. import __version__
from ..errors import FolderError, InputError
from ..hamming.bits import check_bits
from ..hamming.small_vectors import Projection
from ..models.fingerprint import ModelId
from ..utils.reading import parse_json

FORMAT, FORMAT_VERSION = "adsh-index", 1
_WIDEST = 1 << 16  # numbers of a small vector
HEADER, PROJECTION = "about", "projection"  # the names under which an index stores them


@dataclass(frozen=True)
class Header:
    """What is decided when an index is created."""

    bits: int
    model: str | None = None
    format_version: int = FORMAT_VERSION
    lineage: tuple[str, ...] = ()  # models that `model` descends from, oldest first

    @classmethod
    def new(cls, bits: int, model: ModelId | None, format_version: int = FORMAT_VERSION) -> Header:
        """Return the header of a new index."""
        known = ModelId("") if model is None else model
        return cls(bits, known.fingerprint or None, format_version, known.lineage)

    @property
    def generation(self) -> int:
        """The number of the model: how many models it descends from."""
        return len(self.lineage)

    def to_json(self) -> bytes:
        """Return the header as it is stored."""
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()

    @classmethod
    def from_json(cls, stored: bytes | None, index: object, newest: int = FORMAT_VERSION) -> Header:
        """Read a stored header.

        Args:
            stored: what `to_json` returned; None if there is nothing.
            index: the location of the index, for messages.
            newest: the newest format version that can be read.

        Returns:
            The header.

        Raises:
            FolderError: it is no header, or of a newer version.
        """
        try:
            fields = parse_json(stored or b"{}")
        except ValueError:
            fields = None
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise FolderError(f"{index} is not an adsh index: give the location of one that open_index created")
        version, bits, model = (fields.get(name) for name in ("format_version", "bits", "model"))
        lineage = fields.get("lineage", [])
        right = isinstance(model, str | None) and isinstance(lineage, list)
        if type(version) is not int or type(bits) is not int or not right:
            raise FolderError(f"{index} has a damaged header: restore the index from a copy")
        if version > newest:
            raise FolderError(
                f"{index} has format version {version}, and adsh {__version__} reads 1 to {newest}: upgrade adsh"
            )
        return cls(check_bits(bits), model, version, tuple(map(str, lineage)))

    def check_bits(self, bits: int | None, index: object) -> None:
        """Raise if other bits than these were given; None stands for whatever the index has."""
        if bits is not None and check_bits(bits) != self.bits:
            raise InputError(
                f"bits={bits}, but {index} holds codes of {self.bits} bits: open it with bits={self.bits}, or without "
                "bits="
            )

    def advanced_to(self, model: ModelId, items: int, index: object) -> Header:
        """Return the header with this model, which is the one there was or descends from it; arguments as below."""
        header = self.with_model(model, items, index)
        same = header.model == model.fingerprint
        return header if same else replace(header, model=model.fingerprint, lineage=model.lineage)

    def with_model(self, model: ModelId, items: int, index: object) -> Header:
        """Return the header with this model, if there is none yet; else check that it is the same or descends from it.

        Args:
            model: the model.
            items: how many items the index holds.
            index: the location of the index, for messages.

        Returns:
            The header to store.

        Raises:
            InputError: the codes are, or may be, those of another model, or of a newer one.
        """
        if model.fingerprint == self.model:
            return self
        if model.fingerprint in self.lineage:
            raise InputError(
                f"{index} follows a newer version of the model {model.fingerprint[:12]}, {str(self.model)[:12]}: use "
                "the newer model"
            )
        if self.model is not None and self.model not in model.lineage:
            raise InputError(
                f"{index} holds codes of model {self.model[:12]}, not of {model.fingerprint[:12]}: codes of two models "
                "cannot be compared; use that model, or another index"
            )
        if self.model is not None:
            return self
        if items:
            raise InputError(
                f"{index} holds {items} codes of a model that was not recorded: open it without model=, or add to a "
                "new index"
            )
        return replace(self, model=model.fingerprint, lineage=model.lineage)


def no_index(index: object) -> InputError:
    """The error for a location without an index, when there are no bits to create one with."""
    return InputError(f"there is no index at {index}: give bits= to create one")


def save_projection(projection: Projection) -> bytes:
    """Return a projection as bytes."""
    shape = np.array(projection.components.shape, dtype="<i8").tobytes()
    arrays = (
        projection.mean.astype("<f4"),
        projection.components.astype("<f4"),
        np.array(projection.scale, dtype="<f8"),
    )
    return shape + b"".join(array.tobytes() for array in arrays)


def load_projection(stored: bytes | None) -> Projection | None:
    """Read what `save_projection` returned; None for None."""
    if stored is None:
        return None
    wide, narrow = np.frombuffer(stored, "<i8", 2).tolist() if len(stored) >= 16 else (-1, -1)
    if wide < 0 or not 0 <= narrow <= _WIDEST or len(stored) != 16 + 4 * (wide + wide * narrow) + 8:
        raise FolderError("the projection of the vectors is damaged: restore the index from a copy")
    numbers = np.frombuffer(stored, "<f4", wide + wide * narrow, 16)
    scale = float(np.frombuffer(stored, "<f8", 1, 16 + 4 * len(numbers))[0])
    return Projection(numbers[:wide], numbers[wide:].reshape(wide, narrow), scale)
