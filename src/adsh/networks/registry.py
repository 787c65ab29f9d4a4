"""Networks by name: which there are, what they take, and how to create one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..config import FROZEN_PREFIX
from ..errors import AdshWarning, InputError, first_line
from ..hamming.bits import check_bits
from .frozen import freeze
from .posterior import usual_temperature, with_posterior
from .preprocess import Preprocess, check_center_crop_ratio, check_interpolation
from .traits import traits_of
from .weights import load_pretrained, load_weights

FEATURES, IMAGES = "features", "images"
PRETRAINED = "pretrained"
_ANY_SIZE = 64  # side of the images for a network that takes any: large enough to recognise things, and quick


@dataclass(frozen=True)
class _Entry:
    """A network that `module`.build(bits, input_shape, **arguments, **options) creates."""

    takes: str
    module: str
    arguments: dict[str, Any] = field(default_factory=dict)
    weights: str | None = None  # the default of the option `weights`


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
NETWORKS = tuple(_NETWORKS)

TIMM_PREFIX = "timm:"
_MLP_OPTIONS = ("hidden", "noise")  # of the mlp on a frozen network
_RESIZE_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "interpolation": check_interpolation,
    "center_crop_ratio": check_center_crop_ratio,
}
_WITHOUT_RESIZE_OPTIONS = ("tiny", "cnn_f")  # do not resize, or in a way of their own
# Options by their earlier names, which users may still pass and which saved models hold.
_EARLIER_NAMES = {"interpolation": "enlarge", "center_crop_ratio": "centre", "frozen_blocks": "fixed"}


def create_network(
    name: str,
    bits: int,
    input_shape: Sequence[int],
    *,
    classes: int | None = None,
    label_sets: int | None = None,
    temperature: float | None = None,
    **options: Any,
) -> nn.Module:
    """Create a network by name. Its attribute `adsh_weights` says which weights were loaded.

    Args:
        name: one of `NETWORKS`, "timm:NAME" for a network of the timm library, or "frozen:NAME" for the network NAME
            without further training and an mlp of `hidden` units on its features.
        bits: the code length, which is the width of the output.
        input_shape: the shape of an item: (d,) features or (H, W, channels) images.
        classes: the classes that a posterior head predicts, see `networks.posterior`; None for a head of bits.
        label_sets: the sets of such classes that it predicts, where an item may have several; see
            `networks.label_set_scores`.
        temperature: of that head; None for `networks.posterior.usual_temperature`.
        **options: the network's own. Most image networks take `size`, the side that images are resized to on the
            device; `interpolation`, "bilinear" or "bicubic", for images smaller than that; `center_crop_ratio`, the
            share of the side to keep; and all take `weights`: "pretrained", the path of a weight file, or None for
            random weights. EfficientNet-Lite and timm's networks start pretrained, the others at random.

    Returns:
        The network, (b, ...) items to (b, bits).

    Raises:
        InputError: the name is not known, or the network does not take such items or options.
    """
    bits = check_bits(bits)
    if classes is None:
        return _create(name, bits, input_shape, options)
    network = _create(name, classes, input_shape, options)
    spec: Any = network.adsh_spec
    if temperature is None:
        temperature = usual_temperature(classes, bits) if label_sets is None else 1.0
    network = with_posterior(network, classes, bits, temperature, label_sets)
    head: dict[str, Any] = {"classes": classes, "temperature": temperature}
    if label_sets is not None:
        head["label_sets"] = label_sets
    network.adsh_spec = {**spec, "options": {**spec["options"], **head}}  # type: ignore[assignment]  # not a tensor
    return network


def _create(name: str, width: int, input_shape: Sequence[int], options: dict[str, Any]) -> nn.Module:
    """Create a network of `width` outputs; the other arguments are those of `create_network`."""
    if isinstance(name, str) and name.startswith(FROZEN_PREFIX):
        return _create_frozen(name.removeprefix(FROZEN_PREFIX), width, input_shape, options)
    entry, shape = _find(name), tuple(int(side) for side in input_shape)
    _check_shape(name, entry, shape)
    given = _current_names(options)
    weights = given.pop("weights", entry.weights)
    resize_options = {key: value for key in _RESIZE_OPTIONS if (value := given.pop(key, None)) is not None}
    if not (weights is None or isinstance(weights, str | Path)):
        raise InputError(f'weights={weights!r}: give "pretrained", the path of a weight file, or None')
    loads_itself = name.startswith(TIMM_PREFIX)
    if loads_itself:
        entry = replace(entry, arguments={**entry.arguments, "pretrained": weights == PRETRAINED})
    module = import_module(f".{entry.module}", __package__)
    try:
        network: nn.Module = module.build(width, shape, **entry.arguments, **given)
    except TypeError as problem:
        raise InputError(f"network {name!r} cannot be created with {given}: {first_line(problem)}") from None
    _set_resize_options(network, name, resize_options)
    # A saved model creates its network from this spec and then loads its own weights.
    start = {} if entry.weights is None else {"weights": None}
    spec = {"name": name, "options": {**_earlier_names(given | resize_options), **start}}
    network.adsh_spec = spec  # type: ignore[assignment]  # torch types every attribute as a tensor or module
    if weights is not None and not (loads_itself and weights == PRETRAINED):
        loaded = load_pretrained(network, name) if weights == PRETRAINED else load_weights(network, weights)
        network.adsh_weights = loaded  # type: ignore[assignment]  # as above
        if not loaded.complete:
            warnings.warn(str(loaded), AdshWarning, stacklevel=3)
    return network


def input_size(name: str, **options: Any) -> int | None:
    """Return the side of the images that a network works on, so that none need be stored larger; None for features."""
    if not name.startswith(FROZEN_PREFIX) and _find(name).takes == FEATURES:
        return None
    with torch.device("meta"):  # allocates no weights
        network = create_network(name, 1, (_ANY_SIZE, _ANY_SIZE, 3), **{**options, "weights": None})
    return traits_of(network).image_size or _ANY_SIZE


def takes_center_crop(name: str) -> bool:
    """Whether the network `name` takes the option `center_crop_ratio`."""
    return name.removeprefix(FROZEN_PREFIX) not in _WITHOUT_RESIZE_OPTIONS


def _create_frozen(name: str, width: int, input_shape: Sequence[int], options: dict[str, Any]) -> nn.Module:
    if _find(name).takes == FEATURES:
        raise InputError(f"network {FROZEN_PREFIX + name!r}: {name} takes features: freeze one of images, or use mlp")
    mlp_options = {key: value for key, value in options.items() if key in _MLP_OPTIONS}
    backbone = _create(name, 1, input_shape, {k: v for k, v in options.items() if k not in _MLP_OPTIONS})
    traits = traits_of(backbone)
    if traits.features is None:
        raise InputError(f"network {FROZEN_PREFIX + name!r}: {name} has no features to train on: choose another")
    network = freeze(backbone, width, **mlp_options)
    assert traits.spec is not None
    spec = {"name": FROZEN_PREFIX + name, "options": {**traits.spec["options"], **mlp_options}}
    network.adsh_spec = spec  # type: ignore[assignment]  # torch types every attribute as a tensor or module
    network.adsh_weights = traits.weights  # type: ignore[assignment]  # as above
    return network


def _find(name: str) -> _Entry:
    if isinstance(name, str) and name.startswith(TIMM_PREFIX) and len(name) > len(TIMM_PREFIX):
        return _Entry(IMAGES, "timm", {"model": name.removeprefix(TIMM_PREFIX)}, PRETRAINED)
    if name not in _NETWORKS:
        raise InputError(
            f"network={name!r}: choose one of {', '.join(NETWORKS)}, timm:NAME, frozen:NAME, or pass a torch.nn.Module"
        )
    return _NETWORKS[name]


def _check_shape(name: str, entry: _Entry, shape: tuple[int, ...]) -> None:
    if len(shape) != (1 if entry.takes == FEATURES else 3):
        others = [other for other, kind in _NETWORKS.items() if kind.takes != entry.takes]
        expected = "features (n, d)" if entry.takes == FEATURES else "images (n, H, W, 3)"
        use = f"{', '.join(others[:-1])} or {others[-1]}"
        raise InputError(f"network {name!r} takes {expected}, but an item has shape {shape}: use {use}")


def _set_resize_options(network: nn.Module, name: str, options: Mapping[str, Any]) -> None:
    for option, value in options.items():
        preprocess = traits_of(network).preprocess
        if not isinstance(preprocess, Preprocess):  # cnn_f subtracts a mean image, which has one size
            raise InputError(f"{option}={value!r}: network {name!r} does not resize images that way, leave it out")
        setattr(preprocess, option, _RESIZE_OPTIONS[option](value))


def _current_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by their current names; refuse one that is given by both of its names."""
    current = {earlier: name for name, earlier in _EARLIER_NAMES.items()}
    for earlier, name in current.items():
        if earlier in options and name in options:
            raise InputError(f"{name} and {earlier} are one option, and both are given: leave {earlier} out")
    return {current.get(name, name): value for name, value in options.items()}


def _earlier_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by the names that saved models hold."""
    return {_EARLIER_NAMES.get(name, name): value for name, value in options.items()}
