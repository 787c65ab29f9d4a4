"""Who turns pictures into codes: one small interface, with torch or without."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

from PIL import Image

from ..errors import InputError, MissingExtraError, first_line
from .encoding import Coded


class Coder(Protocol):
    """A model that codes pictures. Called by one thread at a time."""

    bits: int
    fingerprint: str  # what an index records of the model that made its codes
    vector_size: int  # d of the vectors; 0 where there are none
    size: int  # the side that pictures are brought to; 0 where they are taken as they come

    def code(self, images: Sequence[Image.Image]) -> Coded:
        """The codes of some pictures, the same as `adsh encode` gives for their files."""

    def close(self) -> None:
        """Ends the use of it."""


def open_coder(folder: Path, runtime: str = "torch", device: str | None = None) -> Coder:
    """The model in a folder, ready to code."""
    homes = {"torch": ("torch_coder", "TorchCoder"), "onnx": ("onnx_coder", "OnnxCoder")}
    if runtime not in homes:
        raise InputError(f"--runtime {runtime}: choose one of {', '.join(homes)}")
    if runtime == "onnx" and device not in (None, "auto", "cpu"):
        raise InputError(f"--device {device} goes with --runtime torch: leave it out")
    module, name = homes[runtime]
    try:
        kind = getattr(import_module(f"adsh.{module}"), name)
    except ImportError as problem:
        raise MissingExtraError(
            f"--runtime {runtime} cannot be loaded ({first_line(problem)}): pip install 'adsh[{runtime}]'"
            if runtime == "onnx"
            else f"torch cannot be loaded ({first_line(problem)}): pip install adsh, or use --runtime onnx"
        ) from None
    coder: Coder = kind(folder) if runtime == "onnx" else kind(folder, device)
    return coder
