"""Models by name: the rooms above register what they can build, so that loading a saved model need not import them.

`adsh.methods` registers its methods when it is imported; `build_model` imports it where a name is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..errors import InputError

_PROVIDERS = ("adsh.models.adsh", "adsh.methods")  # modules that call `register_model` when they are imported

_builders: dict[str, Callable[..., Any]] = {}


def register_model(name: str, builder: Callable[..., Any]) -> None:
    """Make a model known by name; `builder` takes the parameters of its constructor by name."""
    _builders[name] = builder


def build_model(name: str, **params: Any) -> Any:
    """Build an unfitted model by name. Raises InputError for a name that nobody registered."""
    for provider in _PROVIDERS:
        if name in _builders:
            break
        import_module(provider)
    if name not in _builders:
        raise InputError(f"method {name!r}: choose one of {', '.join(sorted(_builders))}")
    return _builders[name](**params)


def import_object(target: str) -> Any:
    """Return the object that "package.module:attribute" names."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
