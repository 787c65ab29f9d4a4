"""The interface of encoders, which turn images into codes with torch or with onnxruntime. Needs no torch itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..errors import InputError, MissingExtraError, first_line
from ..hamming.bits import Codes

_RUNTIMES = {"torch": "TorchEncoder", "onnx": "OnnxEncoder"}  # each in the module of that name


@dataclass(frozen=True)
class Encoding:
    """What an encoder returns: one row an item."""

    codes: Codes  # (n, bytes) packed
    outputs: NDArray[np.float32]  # (n, bits) real-valued; bit k is 1 where output k is not negative
    vectors: NDArray[np.float32] | None  # (n, d) inputs of the network's last layer; None where the model has none
    familiarity: NDArray[np.float64] | None = None  # (n,) how familiar items look; None where the model cannot say


class Encoder(Protocol):
    """A model that encodes images. Called by one thread at a time."""

    bits: int
    fingerprint: str  # identifies the model; an index stores it with the codes
    lineage: tuple[str, ...]  # fingerprints of the models that it descends from, oldest first
    vector_size: int  # d of the vectors; 0 where there are none
    size: int  # the side that images are resized to; 0 where they are taken as they are

    def encode(self, images: Sequence[Image.Image]) -> Encoding:
        """Return the codes of images, the same as `adsh encode` writes for their files."""

    def code_for(self, labels: Sequence[str]) -> bytes | None:
        """Return the packed code of an item with these labels; None where the model has no code for them."""

    def close(self) -> None:
        """Free the model; nothing can be encoded afterwards."""


def open_encoder(folder: Path, runtime: str = "torch", device: str | None = None) -> Encoder:
    """Load the model in a folder as an encoder.

    Args:
        folder: A saved model, or for the runtime "onnx" one that `adsh export` wrote.
        runtime: "torch" or "onnx".
        device: Where torch runs the network; onnxruntime always uses the CPU.

    Returns:
        The encoder; `close` frees it.

    Raises:
        InputError: The runtime is unknown, or `device` does not go with it.
        MissingExtraError: A package of the runtime is not installed.
    """
    if runtime not in _RUNTIMES:
        raise InputError(f"--runtime {runtime} is unknown: choose one of {', '.join(_RUNTIMES)}")
    if runtime == "onnx" and device not in (None, "auto", "cpu"):
        raise InputError(f"--device {device} goes with --runtime torch only: leave it out")
    try:
        encoder_class = getattr(import_module(f".{runtime}", __package__), _RUNTIMES[runtime])
    except ImportError as problem:
        raise MissingExtraError(
            f"--runtime {runtime} cannot be loaded ({first_line(problem)}): pip install 'adsh[{runtime}]'"
            if runtime == "onnx"
            else f"torch cannot be loaded ({first_line(problem)}): pip install 'adsh[train]', or use --runtime onnx"
        ) from None
    encoder: Encoder = encoder_class(folder) if runtime == "onnx" else encoder_class(folder, device)
    return encoder
