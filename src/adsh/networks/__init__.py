"""The networks F, one file each: F(x) is (batch, c), real-valued, before the tanh.

Inputs come as float32 on the network's device: features (batch, d), or images (batch, channels, H, W) in 0 .. 1.
A network may have `calibrate(sample)`, called once before training with a batch of inputs, and
`head`, its last linear layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from torch import nn

from ..errors import InputError
from ..hamming.bits import check_bits

FEATURES, IMAGES = "features", "images"

# name -> what it takes. The module of that name has build(bits, input_shape, **options).
_NETWORKS = {"linear": FEATURES, "mlp": FEATURES, "tiny": IMAGES}

NETWORKS = tuple(_NETWORKS)


def create_network(name: str, bits: int, input_shape: Sequence[int], **options: Any) -> nn.Module:
    """A network by name, for items of this shape: (d,) features or (H, W, channels) images."""
    if name not in _NETWORKS:
        raise InputError(f"network={name!r}: choose one of {', '.join(NETWORKS)}, or pass a torch.nn.Module")
    takes, shape = _NETWORKS[name], tuple(int(side) for side in input_shape)
    if len(shape) != (1 if takes == FEATURES else 3):
        other = [n for n, kind in _NETWORKS.items() if kind != takes]
        wanted = "features (n, d)" if takes == FEATURES else "images (n, H, W, 3)"
        raise InputError(f"network {name!r} takes {wanted}, but an item has shape {shape}: use {' or '.join(other)}")
    module = import_module(f".{name}", __name__)
    try:
        network: nn.Module = module.build(check_bits(bits), shape, **options)
    except TypeError as problem:
        raise InputError(f"network {name!r} cannot be made with {options}: {problem}") from None
    network.adsh_spec = {"name": name, "options": options}  # type: ignore[assignment]  # not a module
    return network
