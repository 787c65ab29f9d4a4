"""MatConvNet's published networks, read with scipy: matrices and structures alone, no pickle.

A file has `layers`, a list of structures with a name and, for convolutions, height x width x input x output
weights: `weights` = {filters, biases}, or in old files `filters` and `biases`. The mean image is in
`meta.normalization.averageImage`, in old files `normalization.averageImage`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ..errors import InputError, MissingExtraError, first_line
from .cnn_f import CNNF, LAYERS, LRN_CHANNELS


def read_mat(path: Path, network: nn.Module | None) -> dict[str, Tensor]:
    """Return the tensors of CNN-F by the network's names, and those of the last layer as fc8."""
    try:
        from scipy.io import loadmat
    except ImportError:
        raise MissingExtraError(f"{path} is read with scipy: pip install 'adsh[baselines]'") from None
    if not isinstance(network, CNNF):
        raise InputError(f"{path} is a MatConvNet file, which only cnn_f reads: give a .pth, .safetensors or .npz file")
    try:
        content: dict[str, Any] = loadmat(path, squeeze_me=True, struct_as_record=False)
    except Exception as problem:  # scipy has errors of its own, derived from nothing else
        raise InputError(
            f"{path} cannot be read ({first_line(problem)}): give imagenet-vgg-f.mat as published"
        ) from None
    if "net" in content:  # saved with a name, as retrained networks often are
        content = vars(content["net"])
    layers = {str(layer.name): layer for layer in np.atleast_1d(content.get("layers", [])) if hasattr(layer, "name")}
    tensors: dict[str, Tensor] = {}
    for name, place in (*LAYERS, ("fc8", "fc8")):
        if name not in layers:
            continue
        if name.startswith("norm"):
            tensors[f"{place}.values"] = _normalisation(layers[name], path)
            continue
        filters, biases = _convolution(layers[name], path)
        own = network.get_parameter(f"{place}.weight") if place != "fc8" else None
        tensors[f"{place}.weight"] = _as_torch(filters, own)
        tensors[f"{place}.bias"] = torch.from_numpy(np.ascontiguousarray(biases, dtype=np.float32)).reshape(-1)
    mean = _mean_image(content)
    if mean is not None:
        tensors["preprocess.mean"] = _resize_mean(mean, network.preprocess.mean)  # type: ignore[arg-type]  # a buffer
    return tensors


def _convolution(layer: Any, path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    if hasattr(layer, "weights"):
        both = layer.weights
    elif hasattr(layer, "filters") and hasattr(layer, "biases"):
        both = (layer.filters, layer.biases)
    else:
        both = ()
    if len(both) != 2:
        raise InputError(f"{path}: layer {layer.name} has no filters and biases: give imagenet-vgg-f.mat as published")
    return np.asarray(both[0]), np.asarray(both[1])


def _normalisation(layer: Any, path: Path) -> Tensor:
    """Return kappa, alpha and beta of a local response normalisation: its param is [channels kappa alpha beta]."""
    values = np.ravel(getattr(layer, "param", ())).astype(np.float32)
    if len(values) != 4 or values[0] != LRN_CHANNELS:
        raise InputError(
            f"{path}: layer {layer.name} has param {values.tolist()}, but cnn_f sums over {LRN_CHANNELS} channels: "
            "give imagenet-vgg-f.mat as published"
        )
    return torch.from_numpy(values[1:])


def _as_torch(filters: NDArray[Any], own: Tensor | None) -> Tensor:
    """Transpose (height, width, input, output) to (output, input, height, width), or to rows for linear layers."""
    if filters.ndim == 2:  # 1 x 1 x input x output, squeezed
        filters = filters[None, None]
    tensor = torch.from_numpy(np.ascontiguousarray(filters.transpose(3, 2, 0, 1), dtype=np.float32))
    return tensor.flatten(1) if own is None or own.ndim == 2 else tensor


def _mean_image(content: dict[str, Any]) -> Tensor | None:
    """Return the mean image (3, H, W), or the mean color (3, 1, 1); None where the file has neither."""
    normalization = getattr(content.get("meta"), "normalization", None) or content.get("normalization")
    mean = getattr(normalization, "averageImage", None)
    if mean is None or np.size(mean) == 0:
        return None
    array = np.asarray(mean, dtype=np.float32)
    array = array.reshape(1, 1, -1) if array.ndim < 3 else array
    return torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))


def _resize_mean(mean: Tensor, own: Tensor) -> Tensor:
    """Return the mean image at the network's size; its mean color where the network takes images of any size."""
    if own.shape[-1] == 1:
        return mean.mean((1, 2), keepdim=True)
    if mean.shape[-1] == 1:
        return mean.expand_as(own)
    if mean.shape == own.shape:
        return mean
    return functional.interpolate(mean[None], own.shape[-2:], mode="bilinear", antialias=True)[0]
