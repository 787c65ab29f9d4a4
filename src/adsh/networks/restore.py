"""Create the network of a saved model: no more memory than its weights take, no weight file, no network access."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..config import FROZEN_PREFIX
from ..errors import InputError
from .registry import TIMM_PREFIX


def saved_options(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a saved network; those of its `spec` without weights, which the model has itself.

    Raises:
        InputError: timm would read the network's description from elsewhere.
    """
    name = str(spec["name"])
    inner = name.removeprefix(FROZEN_PREFIX)
    if inner.startswith(TIMM_PREFIX) and ":" in inner.removeprefix(TIMM_PREFIX):
        raise InputError(
            f"the model was fitted with the network {name!r}, which timm fetches from elsewhere, and loading a model "
            "fetches nothing: create it and pass it as load(folder, network=…)"
        )
    return {**spec["options"], "weights": None}


def build_with_tensors(build: Callable[[], nn.Module], tensors: Mapping[str, Tensor]) -> nn.Module:
    """Return the network that `build` creates, with these tensors as its weights.

    It is created without memory first. Only if the names and shapes of its tensors are those given is memory taken.

    Args:
        build: creates the network.
        tensors: the weights, by their names in the network's `state_dict`.

    Returns:
        The network on the CPU, in the memory layout that `build` chose.

    Raises:
        RuntimeError: names or shapes differ.
    """
    with torch.device("meta"):
        network = build()
    own = network.state_dict()
    # An exact copy, laid out as in the network: some layers compute other roundings for other layouts.
    laid_out = {name: _like(own[name], tensor) if name in own else tensor for name, tensor in tensors.items()}
    network.load_state_dict(laid_out, assign=True)
    if any(tensor.is_meta for tensor in (*network.parameters(), *network.buffers())):
        network = build()  # it computes tensors that are not saved; its size is known to be right
        network.load_state_dict(dict(tensors))
    return network


def _like(own: Tensor, saved: Tensor) -> Tensor:
    """Return the saved tensor with the type and strides of the network's own; as it is if the shapes differ."""
    if own.shape != saved.shape:
        return saved
    return torch.empty_strided(own.shape, own.stride(), dtype=own.dtype, device="cpu").copy_(saved)
