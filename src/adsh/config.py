"""Presets: named sets of values for everything Algorithm 1 leaves open.

paper            as the paper says: V after every inner epoch, U by a fresh pass
authors-matlab   as the authors' MATLAB program does: V once an outer iteration, sign(U) in S'U
authors-pytorch  as the authors' PyTorch program does: V once an outer iteration, no reshuffling, images less their rim
modern           the default: the best recipe found here, with values for each kind of network
fast             the shortest run to what was the best published MAP on CIFAR-10
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import inf
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

from .errors import InputError

COMPILED = "reduce-overhead"  # the mode of torch.compile that pays
RECORDED = "graph"  # nothing is compiled: a step is recorded on the GPU as it is, in a second, and replayed
WORTH_COMPILING = 250_000  # items seen in training: fewer are seen sooner than a network is compiled


@dataclass(frozen=True)
class Recipe:
    """The values of one run."""

    gamma: float = 200.0  # weight of |v_i - u_i|^2, eq. (4)
    soften: float = 0.0  # similar pairs aim at u.v = c (12 / c)^soften where c > 12; 0 for the paper's c
    samples: int = 2000  # m, the size of Omega
    outer: int = 50  # T_out
    inner: int = 3  # T_in, epochs over Omega
    batch_size: int = 64
    parts: int = 1  # of a mini-batch, for the same bits in any number of processes; 1 for one a process
    optimizer: Literal["sgd", "adamw"] = "sgd"
    lr: float = 1e-3
    head_lr: float = 1.0  # the last layer learns so many times faster
    lr_end: float = 0.0  # where the schedules "log" and "cosine" end
    schedule: Literal["constant", "log", "tenth", "cosine"] = "constant"
    warmup: float = 0.0  # of all steps, linear from 0
    weight_decay: float = 5e-4
    codes_after: Literal["epoch", "outer"] = "outer"  # when V is updated
    sweeps: int = 1  # over the bits of V at each update
    collect: Literal["stale", "fresh"] = "stale"  # U as the batches left it, or by a pass in evaluation mode
    signed: bool = False  # sign(U) in the S'U term of Q
    reshuffle: bool = True  # new mini-batches every inner epoch
    head_std: float | None = None  # last layer drawn from normal(0, head_std)
    # for images
    size: int = 0  # the side they are resized to, on the device; 0 for the network's own
    enlarge: Literal["bilinear", "bicubic"] = "bilinear"  # how smaller images are brought to that side
    centre: float = 1.0  # of the side: images are made larger by as much, and their centre is taken
    fixed: int = 0  # blocks of an EfficientNet-Lite left as they are, from the image on; see networks.efficientnet_lite
    start_size: int = 0  # a smaller side to begin with, for speed; 0 for none
    start_share: float = 0.5  # of the outer iterations at that side
    shift: float = 0.0  # moved by up to this share of the side, the edge repeated
    flip: bool = False  # mirrored, every other time
    crop: float = 0.0  # a random resized crop of at least this share of the area; 0 for none
    mirror: bool = False  # an image is coded by the mean over it and its mirror image
    # for speed and for steadier weights
    ema: float = 0.0  # share kept of the averaged weights at each step; 0 for none
    bf16: bool = False  # on a GPU
    compile: bool | str = False  # on a GPU: a minute at first, then shorter steps; a mode of torch.compile; or "graph"

    def __post_init__(self) -> None:
        for name, (fits, made, wanted) in _CHECKS.items():
            value = getattr(self, name)
            if not fits(value):
                raise InputError(f"{name}={value!r}: give {wanted}")
            object.__setattr__(self, name, made(value))
        if self.schedule == "log" and not (self.lr > 0 and self.lr_end > 0):
            raise InputError(f"schedule='log' from lr={self.lr:g} to lr_end={self.lr_end:g}: both must be above 0")

    def target(self, bits: int) -> float:
        """What u.v of a similar pair aims at, as a share of c."""
        return float(min(1.0, (12 / bits) ** self.soften))


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < inf


def _as_it_is(value: Any) -> Any:
    return value


# what fits, what is made of it, and what is asked for where it does not
_Check = tuple[Callable[[Any], bool], Callable[[Any], Any], str]
_COUNT: _Check = (lambda value: _whole(value) and value > 0, int, "a whole number of at least 1")
_SIDE: _Check = (_whole, int, "a side in pixels, or 0")
_AMOUNT: _Check = (_number, float, "a number of at least 0")
_SHARE: _Check = (lambda value: _number(value) and value <= 1, float, "a share, 0 to 1")
_SWITCH: _Check = (lambda value: isinstance(value, bool), _as_it_is, "True or False")
_MODES = (RECORDED, "default", COMPILED, "max-autotune", "max-autotune-no-cudagraphs")  # ours, and torch.compile's
_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(("samples", "outer", "inner", "batch_size", "sweeps", "parts"), _COUNT),
    **dict.fromkeys(("size", "start_size"), _SIDE),
    "fixed": (_whole, int, "a number of blocks, or 0"),
    **dict.fromkeys(("gamma", "lr", "soften", "head_lr", "lr_end", "weight_decay"), _AMOUNT),
    **dict.fromkeys(("start_share", "shift", "crop", "warmup", "ema"), _SHARE),
    **dict.fromkeys(("signed", "reshuffle", "flip", "mirror", "bf16"), _SWITCH),
    "centre": (lambda value: _number(value) and 0 < value <= 1, float, "a share above 0, up to 1"),
    "head_std": (lambda value: value is None or _number(value), _as_it_is, "a number of at least 0, or None"),
    "compile": (
        lambda value: isinstance(value, bool) or value in _MODES,
        _as_it_is,
        f"True, False or one of {', '.join(_MODES)}",
    ),
}
for _name, _kind in get_type_hints(Recipe).items():
    if get_origin(_kind) is Literal:
        _CHECKS[_name] = (get_args(_kind).__contains__, str, f"one of {', '.join(get_args(_kind))}")


# facts about the authors' programs: SGD without momentum, weight decay 5e-4, T_in 3, m 2000, batch 64
_AUTHORS = Recipe()

_PRESETS: dict[str, Recipe] = {
    # The paper tunes the rate in 1e-6 .. 1e-2 on validation and names none: 1e-3 is a start to tune from.
    "paper": replace(_AUTHORS, samples=1000, batch_size=128, codes_after="epoch", collect="fresh"),
    "authors-matlab": replace(_AUTHORS, lr=1e-4, lr_end=1e-6, schedule="log", signed=True, head_std=0.01),
    "authors-pytorch": replace(_AUTHORS, lr=1e-3, schedule="tenth", reshuffle=False, centre=224 / 256),
    "modern": Recipe(
        samples=8192, outer=66, inner=1, batch_size=256, optimizer="adamw", lr=1e-3, schedule="cosine",
        warmup=0.1, weight_decay=0.05, shift=0.125, flip=True, mirror=True, ema=0.998, bf16=True, compile=COMPILED,
    ),
    # Not compiled: that takes 50 s and gains a few. `adsh train --compile` does where runs follow one another.
    "fast": Recipe(
        samples=8192, outer=26, inner=1, batch_size=256, optimizer="adamw", lr=6e-4, schedule="cosine",
        warmup=0.1, weight_decay=0.05, shift=0.125, flip=True, mirror=True, ema=0.975, bf16=True, compile=RECORDED,
    ),
}  # fmt: skip

# What changes for multi-label data (the authors' values for NUS-WIDE), and for small networks.
_MULTI_LABEL: dict[str, dict[str, Any]] = {
    "paper": {"samples": 2000, "inner": 5},
    "authors-matlab": {"lr": 10**-4.5},
    "modern": {"sweeps": 3, "soften": 0.25},
    "fast": {"sweeps": 3, "soften": 0.25, "fixed": 0},  # blocks left as they are cost .016 there
}
# Many label sets on features are soon learned by heart. Methods that learn from pairs alone lose by it: decision 16.
_MULTI_LABEL_ON_FEATURES: dict[str, dict[str, Any]] = {
    "adsh": {"weight_decay": 1.0, "gamma": 2000.0},
    "classifier": {"weight_decay": 1.0},
}
_SMALL: dict[str, Any] = {
    "samples": 2000, "batch_size": 64, "weight_decay": 1e-4,
    "shift": 0.0, "flip": False, "mirror": False, "ema": 0.0, "bf16": False, "compile": False,
}  # fmt: skip
_BY_NETWORK: dict[tuple[str, str], dict[str, Any]] = {
    ("modern", "linear"): {**_SMALL, "outer": 50, "inner": 2, "lr": 1e-2},
    ("modern", "mlp"): {**_SMALL, "outer": 50, "inner": 3, "lr": 3e-3},
    ("modern", "tiny"): {**_SMALL, "outer": 50, "lr": 6e-3},
    ("modern", "efficientnet_lite2"): {"outer": 44, "size": 224, "lr": 4e-4},
    ("modern", "alexnet"): {"outer": 120, "lr": 4e-4},
    **{("fast", f"efficientnet_lite{i}"): {"size": 128, "enlarge": "bicubic", "fixed": 3} for i in range(3)},
    ("fast", "dsh_net"): {"outer": 100, "batch_size": 64, "lr": 3e-3},  # has no weights to start from
    ("fast", "linear"): {**_SMALL, "outer": 15, "lr": 1e-2},
    ("fast", "mlp"): {**_SMALL, "outer": 15, "lr": 6e-3},
    ("fast", "tiny"): {**_SMALL, "outer": 15, "lr": 1e-2},
}

PRESETS = tuple(_PRESETS)
PREFIX = "frozen:"  # of networks that stay as they are, with an mlp on their features: see networks.frozen


def recipe(preset: str, network: str, *, multi_label: bool = False, method: str = "adsh", **given: Any) -> Recipe:
    """The preset's values for this network and method, with those given (not None) in their place."""
    if preset not in _PRESETS:
        raise InputError(f"preset={preset!r}: choose one of {', '.join(PRESETS)}")
    unknown = set(given) - {field.name for field in fields(Recipe)}
    if unknown:
        raise InputError(f"{unknown.pop()!r} is not a value of a recipe")
    if network.startswith(PREFIX):
        network = "mlp"  # is what is trained
    values = dict(_BY_NETWORK.get((preset, network), {}))
    if multi_label:
        values.update(_MULTI_LABEL.get(preset, {}))
        if preset in ("modern", "fast") and network in ("linear", "mlp"):
            values.update(_MULTI_LABEL_ON_FEATURES.get(method, {}))
    values.update({name: value for name, value in given.items() if value is not None})
    return replace(_PRESETS[preset], **values)
