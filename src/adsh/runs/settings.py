"""`adsh train --method NAME`: from the flags of a run to a method, and what is told of it afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..config import COMPILE_MODE
from ..errors import InputError
from ..methods import DEEP, METHODS, create
from ..models.adsh import ADSH
from ..models.protocol import HashModel

if TYPE_CHECKING:
    from .train import TrainSettings

_OF_ADSH = ("gamma",)
_OF_NETWORKS = (
    "network",
    "weights",
    "samples",
    "outer",
    "inner",
    "batch_size",
    "lr",
    "compile",
    "parts",
    "checkpoint_every",
)


def check_method(settings: TrainSettings) -> None:
    """Raises where there is no such method, or it has no use for a flag that is given."""
    name = settings.method
    if name == ADSH.name:
        if settings.options:
            raise InputError("--options go with --method: ADSH's values have flags of their own")
        return
    if name not in METHODS:
        raise InputError(f"--method {name}: choose one of {ADSH.name}, {', '.join(METHODS)}")
    useless = _OF_ADSH if name in DEEP else (*_OF_ADSH, *_OF_NETWORKS)
    given = [flag for flag in useless if getattr(settings, flag)]
    if settings.unlabelled != "network":
        given.append("unlabelled")
    if name not in DEEP and settings.device not in ("auto", "cpu"):
        given.append("device")
    if name not in DEEP and settings.preset != "modern":
        given.append("preset")
    if given:
        flags = ", ".join(f"--{flag.replace('_', '-')}" for flag in given)
        raise InputError(f"{name} has no {flags}: leave it out; its own options go into --options NAME=VALUE,…")


def keeps_checkpoints(method: str) -> bool:
    """Whether a run of this method can go on where it stopped."""
    return method == ADSH.name or method in DEEP


def made(settings: TrainSettings, shape: tuple[int, ...]) -> HashModel:
    """The method that the settings ask for, to be fitted on items of this shape."""
    options = {**parsed(settings.options or ""), "seed": settings.seed, "progress": False}
    if settings.method in DEEP:
        given = {name: getattr(settings, name) for name in ("samples", "outer", "inner", "batch_size", "lr")}
        options |= {
            **given,
            "network": settings.network or ("mlp" if len(shape) == 1 else "tiny"),
            "network_options": {"weights": settings.weights} if settings.weights else None,
            "preset": settings.preset,
            "recipe": other_values(settings),
            "device": settings.device,
        }
    model: HashModel = create(settings.method, bits=settings.bits, **options)
    return model


def other_values(settings: TrainSettings) -> dict[str, Any]:
    """What the settings say of compiling and of parts, as values of the recipe; nothing for the preset's."""
    compiled = {} if settings.compile is None else {"compile": COMPILE_MODE if settings.compile else False}
    return compiled | ({} if settings.parts is None else {"parts": settings.parts})


def parsed(text: str) -> dict[str, Any]:
    """`rounds=10,hash_function=ridge` as names and values: numbers where they read as such."""
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or not name.strip().isidentifier():
            raise InputError(f"--options {text}: give NAME=VALUE, several with commas between them")
        values[name.strip()] = _value(value.strip())
    return values


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
