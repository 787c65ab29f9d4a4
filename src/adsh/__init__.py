"""Asymmetric Deep Supervised Hashing: learn short binary codes for labelled images, and search them."""

from typing import TYPE_CHECKING, Any

from .utils import moved

__version__ = "0.1.0"

__all__ = [
    "ADSH",
    "AdshError",
    "AdshWarning",
    "Changes",
    "LabelSets",
    "create_network",
    "data",
    "evaluate",
    "load",
    "methods",
    "metrics",
    "open_index",
    "train_and_index",
]

if TYPE_CHECKING:
    from . import data, evaluate, methods, metrics
    from .errors import AdshError, AdshWarning
    from .index import open_index
    from .labels import LabelSets
    from .learn.changes import Changes
    from .models.adsh import ADSH, load
    from .networks import create_network
    from .runs.pipeline import train_and_index

_HOMES = {
    "ADSH": "models.adsh",
    "load": "models.adsh",
    "create_network": "networks",
    "LabelSets": "labels",
    "Changes": "learn.changes",
    "data": "data",
    "evaluate": "evaluate",
    "methods": "methods",
    "metrics": "metrics",
    "open_index": "index",
    "train_and_index": "runs.pipeline",
    "AdshError": "errors",
    "AdshWarning": "errors",
}

moved.install()


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that `import adsh` alone needs no torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'adsh' has no attribute {name!r}")
    from importlib import import_module

    try:
        home = import_module(f".{_HOMES[name]}", __name__)
    except ModuleNotFoundError as problem:
        if problem.name != "torch":
            raise
        from .errors import MissingExtraError

        raise MissingExtraError(f"adsh.{name} needs torch: pip install 'adsh[train]'") from None
    value = home if name == _HOMES[name] else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
