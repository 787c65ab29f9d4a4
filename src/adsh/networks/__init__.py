"""The networks F, one file each: F(x) is (batch, c), real-valued, before the tanh.

Inputs come as float32 on the network's device: features (batch, d), or images (batch, channels, H, W) in 0 .. 1.
A network may have `calibrate(sample)`, called once before training with a batch of inputs, and
`head`, its last linear layer. Image networks have `features(images)`, what that layer sees.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..config import PREFIX
from ..errors import AdshWarning, InputError
from ..hamming.bits import check_bits
from .frozen import freeze
from .preprocess import Preprocess, check_centre, check_enlarge
from .weights import LoadedWeights, load_pretrained, load_weights

__all__ = ["NETWORKS", "LoadedWeights", "create_network", "input_size", "load_weights"]

FEATURES, IMAGES = "features", "images"
PRETRAINED = "pretrained"
_ANY_SIZE = 64  # the side of images for a network that takes any: photographs keep their shapes, and it is quick


@dataclass(frozen=True)
class _Entry:
    """Where a network is made: `module`.build(bits, input_shape, **arguments, **options)."""

    takes: str
    module: str
    arguments: dict[str, Any] = field(default_factory=dict)
    weights: str | None = None  # what it starts from where the user does not say


_NETWORKS = {
    "linear": _Entry(FEATURES, "linear"),
    "mlp": _Entry(FEATURES, "mlp"),
    "tiny": _Entry(IMAGES, "tiny"),
    "dsh_net": _Entry(IMAGES, "dsh_net"),
    "cnn_f": _Entry(IMAGES, "cnn_f"),
    "alexnet": _Entry(IMAGES, "alexnet"),
    **{f"vgg{depth}": _Entry(IMAGES, "vgg", {"depth": depth}) for depth in (11, 16)},
    **{f"resnet{depth}": _Entry(IMAGES, "resnet", {"depth": depth}) for depth in (18, 34, 50)},
    **{f"efficientnet_lite{i}": _Entry(IMAGES, "efficientnet_lite", {"variant": i}, PRETRAINED) for i in range(3)},
}
_TIMM, _OF_THE_TOP = "timm:", ("hidden", "noise")  # options of frozen.freeze

_WAYS: dict[str, Callable[[Any], Any]] = {"enlarge": check_enlarge, "centre": check_centre}  # to resize

NETWORKS = tuple(_NETWORKS)
AS_THEY_ARE = ("tiny", "cnn_f")  # take images so, or resize them in a way of their own


def create_network(name: str, bits: int, input_shape: Sequence[int], **options: Any) -> nn.Module:
    """A network by name, for items of this shape: (d,) features or (H, W, channels) images.

    Options are the network's own (for images mostly `size`, the side they are resized to on the device; `enlarge`, how,
    where they are smaller: "bilinear" or "bicubic"; `centre`, the share of the side to keep), and `weights`:
    "pretrained", the path of a weight file, or None for a random start. EfficientNet-Lite and timm's networks start
    pretrained, the others at random.
    `adsh_weights` of the network tells what was filled.
    "frozen:NAME" is the network NAME left as it is with an mlp on its features, of `hidden` units.
    """
    if isinstance(name, str) and name.startswith(PREFIX):
        return _frozen(name.removeprefix(PREFIX), bits, input_shape, options)
    entry, shape = _find(name), tuple(int(side) for side in input_shape)
    if len(shape) != (1 if entry.takes == FEATURES else 3):
        other = [n for n, kind in _NETWORKS.items() if kind.takes != entry.takes]
        wanted = "features (n, d)" if entry.takes == FEATURES else "images (n, H, W, 3)"
        use = f"{', '.join(other[:-1])} or {other[-1]}"
        raise InputError(f"network {name!r} takes {wanted}, but an item has shape {shape}: use {use}")
    given = dict(options)
    weights = given.pop("weights", entry.weights)
    ways = {option: value for option in _WAYS if (value := given.pop(option, None)) is not None}
    if not (weights is None or isinstance(weights, str | Path)):
        raise InputError(f'weights={weights!r}: give "pretrained", the path of a weight file, or None')
    if name.startswith(_TIMM):
        entry = replace(entry, arguments={**entry.arguments, "pretrained": weights == PRETRAINED})
    bits, module = check_bits(bits), import_module(f".{entry.module}", __name__)
    try:
        network: nn.Module = module.build(bits, shape, **entry.arguments, **given)
    except TypeError as problem:
        raise InputError(f"network {name!r} cannot be made with {given}: {problem}") from None
    for option, value in ways.items():
        preprocess = getattr(network, "preprocess", None)
        if not isinstance(preprocess, Preprocess):
            raise InputError(f"{option}={value!r}: network {name!r} does not resize images that way, leave it out")
        setattr(preprocess, option, _WAYS[option](value))
    given |= ways
    # A saved model makes its network from this and then fills it with its own weights.
    start = {} if entry.weights is None else {"weights": None}
    network.adsh_spec = {"name": name, "options": {**given, **start}}  # type: ignore[assignment]  # not a module
    if weights is not None and not (name.startswith(_TIMM) and weights == PRETRAINED):
        loaded = load_pretrained(network, name) if weights == PRETRAINED else load_weights(network, weights)
        network.adsh_weights = loaded  # type: ignore[assignment]  # not a module
        if not loaded.complete:
            warnings.warn(str(loaded), AdshWarning, stacklevel=2)
    return network


def _frozen(name: str, bits: int, input_shape: Sequence[int], options: dict[str, Any]) -> nn.Module:
    if _find(name).takes == FEATURES:
        raise InputError(f"network {PREFIX + name!r}: {name} takes features: freeze one of images, or use mlp")
    of_top = {key: value for key, value in options.items() if key in _OF_THE_TOP}
    backbone = create_network(name, 1, input_shape, **{k: v for k, v in options.items() if k not in _OF_THE_TOP})
    if not callable(getattr(backbone, "features", None)):
        raise InputError(f"network {PREFIX + name!r}: {name} gives no features to train on")
    network = freeze(backbone, check_bits(bits), **of_top)
    inner: dict[str, Any] = backbone.adsh_spec["options"]  # type: ignore[index,assignment]  # not a module
    network.adsh_spec = {"name": PREFIX + name, "options": {**inner, **of_top}}  # type: ignore[assignment]  # not a module
    network.adsh_weights = getattr(backbone, "adsh_weights", None)  # type: ignore[assignment]  # not a module
    return network


def input_size(name: str, **options: Any) -> int | None:
    """The side of the images a network works on, so that none need be kept larger; None for one of features."""
    if not name.startswith(PREFIX) and _find(name).takes == FEATURES:
        return None
    with torch.device("meta"):  # no weights are made
        network = create_network(name, 1, (_ANY_SIZE, _ANY_SIZE, 3), **{**options, "weights": None})
    return getattr(getattr(network, "preprocess", None), "size", None) or _ANY_SIZE


def _find(name: str) -> _Entry:
    if isinstance(name, str) and name.startswith(_TIMM) and len(name) > len(_TIMM):
        return _Entry(IMAGES, "timm", {"model": name.removeprefix(_TIMM)}, PRETRAINED)
    if name not in _NETWORKS:
        raise InputError(
            f"network={name!r}: choose one of {', '.join(NETWORKS)}, timm:NAME, frozen:NAME, or pass a torch.nn.Module"
        )
    return _NETWORKS[name]
