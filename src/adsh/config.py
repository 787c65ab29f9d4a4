"""Presets: named sets of values for everything Algorithm 1 leaves open.

paper            as the paper says: V after every inner epoch, U by a fresh pass
authors-matlab   as the authors' MATLAB program does: V once an outer iteration, sign(U) in S'U
authors-pytorch  as the authors' PyTorch program does: V once an outer iteration, no reshuffling, center crops
modern           the default: the best recipe found here, with values for each kind of network
fast             the shortest run to what was the best published MAP on CIFAR-10

A `Recipe` holds the paper's own values and the groups `optimization`, `images` and `system`. Every value is also read
and given by its flat name, which files have: `Recipe(lr=1e-3)`, `recipe.lr`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import ceil, inf
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

from .errors import InputError

COMPILE_MODE = "reduce-overhead"  # the mode of torch.compile that pays off
CUDA_GRAPH = "graph"  # no compilation: the step is captured as a CUDA graph, in a second, and replayed
COMPILE_MODES = (CUDA_GRAPH, "default", COMPILE_MODE, "max-autotune", "max-autotune-no-cudagraphs")
MIN_ITEMS_TO_COMPILE = 250_000  # items seen in training: with fewer, compiling takes longer than it saves
BITS, POSTERIOR = "bits", "posterior"  # heads: bits of its own, or the label set and from it the code
FROZEN_PREFIX = "frozen:"  # a network that is not trained, with an mlp on its features: see networks.frozen


class _Checked:
    """A dataclass whose values are checked and converted when it is created."""

    def __post_init__(self) -> None:
        for name in vars(self):
            object.__setattr__(self, name, checked(name, getattr(self, name)))


@dataclass(frozen=True)
class OptimizerConfig(_Checked):
    """How the network's weights are learned."""

    optimizer: Literal["sgd", "adamw"] = "sgd"
    """Plain SGD without momentum, or AdamW."""
    lr: float = 1e-3
    """Learning rate."""
    head_lr: float = 1.0
    """How many times faster the last layer learns."""
    lr_end: float = 0.0
    """Learning rate at the end of the schedules "log" and "cosine"."""
    schedule: Literal["constant", "log", "tenth", "cosine"] = "constant"
    """How the learning rate falls; "tenth" divides it by 10 after every `drop_interval` outer iterations."""
    drop_interval: int = 10
    """Of the schedule "tenth". The first iteration does not count: the authors' programs begin at 0."""
    warmup: float = 0.0
    """Share of all steps in which the learning rate rises linearly from 0."""
    weight_decay: float = 5e-4
    """Weight decay; with AdamW, not of biases and norms."""
    head_std: float | None = None
    """Draw the last layer, biases included, from normal(0, head_std); None leaves the network's own initialization."""
    divisor: Literal["batch", "nominal"] = "batch"
    """Divide a mini-batch's gradient by its own size, or the last and shorter one of an epoch by batch_size too."""
    ema_decay: float = 0.0
    """Share of the averaged weights kept at each step; 0 for no averaging."""


@dataclass(frozen=True)
class ImageConfig(_Checked):
    """How images are resized and augmented. Networks on features ignore it."""

    size: int = 0
    """Side in pixels that the network works on; 0 for the network's own."""
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    """How smaller images are enlarged to that side."""
    center_crop_ratio: float = 1.0
    """Images are resized to size / ratio, and their center is taken."""
    frozen_blocks: int = 0
    """Blocks of an EfficientNet-Lite that are not trained, counted from the image."""
    shift: float = 0.0
    """Augmentation: shift by up to this share of the side, repeating the edge."""
    flip: bool = False
    """Augmentation: flip every other image from left to right."""
    crop: float = 0.0
    """Augmentation: a random resized crop of at least this share of the area; 0 for none."""
    flip_tta: bool = False
    """Encode an image by the mean output over it and its mirror image."""


@dataclass(frozen=True)
class SystemConfig(_Checked):
    """How a step is computed. The codes it leads to are the same up to rounding."""

    bf16: bool = False
    """Compute in bfloat16 on a GPU."""
    compile: bool | str = False
    """On a GPU: True, a mode of torch.compile, or "graph" to capture CUDA graphs without compiling."""
    deterministic_shards: int = 1
    """Compute a mini-batch in so many shards: the same bits in any number of processes. 1 for one a process."""


@dataclass(frozen=True, init=False)
class Recipe:
    """The values of one training run: the paper's own, and those of three groups."""

    gamma: float = 200.0
    """Weight of |v_i - u_i|^2, eq. (4)."""
    target_exponent: float = 0.0
    """Similar pairs aim at u.v = c (12 / c)^target_exponent where c > 12; 0 for the paper's c."""
    samples: int = 2000
    """m, the size of Omega."""
    outer: int = 50
    """T_out, outer iterations."""
    inner: int = 3
    """T_in, epochs over Omega in each."""
    batch_size: int = 64
    """Items of a mini-batch."""
    code_update_interval: Literal["epoch", "outer"] = "outer"
    """Update V after every epoch over Omega, or once an outer iteration."""
    sweeps: int = 1
    """Sweeps over the bits of V at each update."""
    refresh_outputs: Literal["stale", "fresh"] = "stale"
    """Take U as the mini-batches left it, or by a pass in evaluation mode."""
    use_sign_outputs: bool = False
    """Put sign(U) in the S'U term of Q."""
    reshuffle: bool = True
    """Draw new mini-batches every inner epoch."""
    head: Literal["bits", "posterior"] = "bits"
    """Learn bits by eqs. (4) and (9), or the posterior of the label sets and a code for each: networks.posterior."""
    optimization: OptimizerConfig = field(default_factory=OptimizerConfig)
    """How the network's weights are learned."""
    images: ImageConfig = field(default_factory=ImageConfig)
    """How images are resized and augmented."""
    system: SystemConfig = field(default_factory=SystemConfig)
    """How a step is computed."""

    def __init__(self, **values: Any) -> None:
        """Take values by any of their names: the paper's own, the groups, and the flat names of the groups' values."""
        groups = {group: values.pop(group, kind()) for group, kind in _GROUPS.items()}
        own: dict[str, Any] = {}
        changes: dict[str, dict[str, Any]] = {group: {} for group in _GROUPS}
        for name, value in _by_current_name(values).items():
            group = _PLACES[name]
            (own if group is None else changes[group])[name] = value
        for each in fields(Recipe):
            if each.name not in _GROUPS:
                object.__setattr__(self, each.name, own.get(each.name, each.default))
        for group, config in groups.items():
            object.__setattr__(self, group, replace(config, **changes[group]))
        if self.schedule == "log" and not (self.lr > 0 and self.lr_end > 0):
            raise InputError(f"schedule='log' from lr={self.lr:g} to lr_end={self.lr_end:g}: both must be above 0")

    def __getattr__(self, name: str) -> Any:
        """Return a value of a group by its flat name."""
        name = _RENAMED.get(name, name)
        group = _PLACES.get(name)
        if group is not None:
            return getattr(getattr(self, group), name)
        if name in _PLACES and name in self.__dict__:
            return self.__dict__[name]
        raise AttributeError(f"a recipe has no value {name!r}")

    def replace(self, **values: Any) -> Recipe:
        """Return a copy with these values, by any of their names, in place of its own."""
        return replace(self, **values)

    def saved(self) -> dict[str, Any]:
        """Return all values under the flat names that files have."""
        values = {name: getattr(self, name) for name in _FILE_NAMES}
        later = {name: getattr(self, name) for name in _LATER_NAMES}
        return values | {name: value for name, value in later.items() if value != getattr(_PLAIN, name)}

    @classmethod
    def load(cls, values: Mapping[str, Any]) -> Recipe:
        """Return the recipe that a file holds; values that no longer exist are ignored."""
        return cls(**{name: value for name, value in values.items() if name not in RETIRED})

    def target(self, bits: int) -> float:
        """Return what u.v of a similar pair aims at, as a share of c."""
        return float(min(1.0, (12 / bits) ** self.target_exponent))


_GROUPS: dict[str, Any] = {"optimization": OptimizerConfig, "images": ImageConfig, "system": SystemConfig}
_PLACES: dict[str, str | None] = {each.name: None for each in fields(Recipe) if each.name not in _GROUPS} | {
    each.name: group for group, kind in _GROUPS.items() for each in fields(kind)
}  # which group holds a value; None for the recipe itself
_RENAMED = {
    "soften": "target_exponent", "codes_after": "code_update_interval", "collect": "refresh_outputs",
    "signed": "use_sign_outputs", "mirror": "flip_tta", "fixed": "frozen_blocks", "centre": "center_crop_ratio",
    "enlarge": "interpolation", "ema": "ema_decay", "parts": "deterministic_shards",
}  # fmt: skip  # earlier names, which are still accepted, and under which files hold the values
RETIRED = ("start_size", "start_share")  # were values once: files may hold them
_FILE_NAMES = (
    "gamma", "soften", "samples", "outer", "inner", "batch_size", "parts", "optimizer", "lr", "head_lr", "lr_end",
    "schedule", "warmup", "weight_decay", "codes_after", "sweeps", "collect", "signed", "reshuffle", "head_std",
    "size", "enlarge", "centre", "fixed", "shift", "flip", "crop", "mirror", "ema", "bf16", "compile",
)  # fmt: skip  # in the order they are written
_LATER_NAMES = ("head", "drop_interval", "divisor")  # written where they differ: other files are as they always were


def current_names(names: Iterable[str]) -> set[str]:
    """Return today's names of values that may be given by earlier ones."""
    return {_RENAMED.get(name, name) for name in names}


def _by_current_name(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values, checked, under today's names; an earlier name wins over today's."""
    current: dict[str, Any] = {}
    for given in sorted(values, key=_RENAMED.__contains__):
        name = _RENAMED.get(given, given)
        if name not in _PLACES:
            raise InputError(f"{given!r} is not a value of a recipe")
        current[name] = checked(name, values[given], given)
    return current


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < inf


def _unchanged(value: Any) -> Any:
    return value


_Check = tuple[Callable[[Any], bool], Callable[[Any], Any], str]  # is it valid, its conversion, what to give instead
_COUNT: _Check = (lambda value: _is_whole(value) and value > 0, int, "a whole number of at least 1")
_AMOUNT: _Check = (_is_number, float, "a number of at least 0")
_SHARE: _Check = (lambda value: _is_number(value) and value <= 1, float, "a share, 0 to 1")
_SWITCH: _Check = (lambda value: isinstance(value, bool), _unchanged, "True or False")
_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(("samples", "outer", "inner", "batch_size", "sweeps", "drop_interval"), _COUNT),
    "deterministic_shards": _COUNT,
    "size": (_is_whole, int, "a side in pixels, or 0"),
    "frozen_blocks": (_is_whole, int, "a number of blocks, or 0"),
    **dict.fromkeys(("gamma", "lr", "target_exponent", "head_lr", "lr_end", "weight_decay"), _AMOUNT),
    **dict.fromkeys(("shift", "crop", "warmup", "ema_decay"), _SHARE),
    **dict.fromkeys(("use_sign_outputs", "reshuffle", "flip", "flip_tta", "bf16"), _SWITCH),
    "center_crop_ratio": (lambda value: _is_number(value) and 0 < value <= 1, float, "a share above 0, up to 1"),
    "head_std": (lambda value: value is None or _is_number(value), _unchanged, "a number of at least 0, or None"),
    "compile": (
        lambda value: isinstance(value, bool) or value in COMPILE_MODES,
        _unchanged,
        f"True, False or one of {', '.join(COMPILE_MODES)}",
    ),
}
for _kind in (Recipe, *_GROUPS.values()):
    for _name, _type in get_type_hints(_kind).items():
        if get_origin(_type) is Literal:
            _CHECKS[_name] = (get_args(_type).__contains__, str, f"one of {', '.join(get_args(_type))}")


def checked(name: str, value: Any, given: str | None = None) -> Any:
    """Return a value as the type it is kept in, or raise.

    Args:
        name: the value's name.
        value: what was given for it.
        given: the name it was given under, for the message.

    Returns:
        The value, converted.
    """
    is_valid, convert, instead = _CHECKS[name]
    if not is_valid(value):
        raise InputError(f"{given or name}={value!r}: give {instead}")
    return convert(value)


_PLAIN = Recipe()
_PRESETS: dict[str, Recipe] = {
    # The defaults are the authors' programs': SGD without momentum, weight decay 5e-4, T_in 3, m 2000. The paper tunes
    # the rate in 1e-6 .. 1e-2 on validation: 1e-3 is a start.
    "paper": Recipe(samples=1000, batch_size=128, code_update_interval="epoch", refresh_outputs="fresh"),
    "authors-matlab": Recipe(
        lr=1e-4, lr_end=1e-6, schedule="log", use_sign_outputs=True, head_std=0.01, divisor="nominal"
    ),
    "authors-pytorch": Recipe(lr=1e-3, schedule="tenth", reshuffle=False, center_crop_ratio=224 / 256),
    "modern": Recipe(
        samples=8192, outer=66, inner=1, batch_size=256, optimizer="adamw", lr=1e-3, schedule="cosine", warmup=0.1,
        weight_decay=0.05, ema_decay=0.998, shift=0.125, flip=True, flip_tta=True, bf16=True, compile=COMPILE_MODE,
    ),
    # Not compiled: that takes 50 s and saves a few. `adsh train --compile` does, for runs that follow one another.
    "fast": Recipe(
        samples=8192, outer=26, inner=1, batch_size=256, optimizer="adamw", lr=6e-4, schedule="cosine", warmup=0.1,
        weight_decay=0.05, ema_decay=0.975, shift=0.125, flip=True, flip_tta=True, bf16=True, compile=CUDA_GRAPH,
    ),
}  # fmt: skip

# What changes for multi-label data (the authors' values for NUS-WIDE), and for small networks.
_MULTI_LABEL: dict[str, dict[str, Any]] = {
    "paper": {"samples": 2000, "inner": 5},
    "modern": {"sweeps": 3, "target_exponent": 0.25},
    "fast": {"sweeps": 3, "target_exponent": 0.25, "frozen_blocks": 0},  # frozen blocks cost .016 there
}
# Many label sets on features are soon memorized. Methods that learn from pairs lose by it: decision 16.
_MULTI_LABEL_ON_FEATURES: dict[str, dict[str, Any]] = {
    "adsh": {"weight_decay": 1.0, "gamma": 2000.0},
    "classifier": {"weight_decay": 1.0},
}
_SMALL: dict[str, Any] = {
    "samples": 2000, "batch_size": 64, "weight_decay": 1e-4,
    "shift": 0.0, "flip": False, "flip_tta": False, "ema_decay": 0.0, "bf16": False, "compile": False,
}  # fmt: skip
_RESIZED_BY_AUTHORS = (
    "cnn_f", "alexnet", "vgg11", "vgg16", "resnet18", "resnet34", "resnet50",
    "efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2",
)  # fmt: skip
_BY_NETWORK: dict[tuple[str, str], dict[str, Any]] = {
    **{("authors-matlab", network): {"interpolation": "bicubic"} for network in _RESIZED_BY_AUTHORS},
    ("modern", "linear"): {**_SMALL, "outer": 50, "inner": 2, "lr": 1e-2},
    ("modern", "mlp"): {**_SMALL, "outer": 50, "inner": 3, "lr": 3e-3},
    ("modern", "tiny"): {**_SMALL, "outer": 50, "lr": 6e-3},
    ("modern", "efficientnet_lite2"): {"outer": 44, "size": 224, "lr": 4e-4},
    ("modern", "alexnet"): {"outer": 120, "lr": 4e-4},
    **{
        ("fast", f"efficientnet_lite{i}"): {"size": 128, "interpolation": "bicubic", "frozen_blocks": 3}
        for i in range(3)
    },
    ("fast", "dsh_net"): {"outer": 100, "batch_size": 64, "lr": 3e-3},  # has no pre-trained weights
    ("fast", "linear"): {**_SMALL, "outer": 15, "lr": 1e-2},
    ("fast", "mlp"): {**_SMALL, "outer": 15, "lr": 6e-3},
    ("fast", "tiny"): {**_SMALL, "outer": 15, "lr": 1e-2},
}

# Options of a network and values for a source of data, by preset: the published CNN-F has 21 layers, none of dropout.
_OPTIONS: dict[tuple[str, str], dict[str, Any]] = {("authors-matlab", "cnn_f"): {"dropout": 0.0}}
_BY_SOURCE: dict[tuple[str, str], dict[str, Any]] = {("authors-matlab", "nuswide"): {"lr": 10**-4.5}}
PRESETS = tuple(_PRESETS)
ON_FEATURES = ("linear", "mlp")  # networks on features


def network_options(preset: str, network: str) -> dict[str, Any]:
    """Return the options of a network that a preset sets."""
    return dict(_OPTIONS.get((preset, network), {}))


def source_values(preset: str, source: str) -> dict[str, Any]:
    """Return the values of a recipe that a preset has for one source of data alone, such as `nuswide`."""
    return dict(_BY_SOURCE.get((preset, source), {}))


def preset_name(network: str) -> str:
    """Return the name under which presets have values for a network: that of a frozen one is what is trained."""
    return "mlp" if network.startswith(FROZEN_PREFIX) else network


def recipe(
    preset: str,
    network: str,
    *,
    multi_label: bool = False,
    method: str = "adsh",
    fits: str = BITS,
    points: int | None = None,
    **given: Any,
) -> Recipe:
    """Return the preset's values for this network and method, with those given (not None) in their place.

    Args:
        preset: one of `PRESETS`.
        network: the network's name; that of a frozen network counts as "mlp", which is what is trained.
        multi_label: whether some items have several labels.
        method: "adsh", or the name of another method that trains a network.
        fits: the head that `choose_head` gives for these labels, which `modern` and `fast` take.
        points: how many points Omega is drawn from, where that is known.
        **given: values of `Recipe` by their flat names.

    Returns:
        The values of one run.
    """
    if preset not in _PRESETS:
        raise InputError(f"preset={preset!r}: choose one of {', '.join(PRESETS)}")
    network = preset_name(network)
    values = dict(_BY_NETWORK.get((preset, network), {}))
    if multi_label:
        values.update(_MULTI_LABEL.get(preset, {}))
        if preset in ("modern", "fast") and network in ON_FEATURES:
            values.update(_MULTI_LABEL_ON_FEATURES.get(method, {}))
    chosen = _by_current_name({name: value for name, value in given.items() if value is not None})
    if preset in ("modern", "fast") and chosen.get("head", fits) == POSTERIOR:
        values["head"] = POSTERIOR
        if network in ON_FEATURES:
            values.update(_posterior_on_features(points, chosen.get("samples")))
    values.update(chosen)
    return replace(_PRESETS[preset], **values)


def _posterior_on_features(points: int | None, samples: int | None) -> dict[str, Any]:
    """Return what changes for a classifier of features, from the number of points and m, where known: decision 19.

    In 50 outer iterations each item is seen 20 times, few items up to 100, and 450,000 in all at most.
    """
    seen = 9_000 if points is None else min(9_000, 2 * points, max(3_000, ceil(0.4 * points)))  # in an iteration
    inner = 2 if points is not None and samples is None and seen > points else 1
    m = ceil(seen / inner)
    drawn = min(samples or m, points or m)
    return {"weight_decay": 1.0, "samples": m, "inner": inner, "batch_size": min(128, max(16, drawn // 8))}
