"""Keep documented modules importable under the paths they had before version 0.2."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "adsh.data.contact_sheet": "adsh.data.images.contact_sheet",
    "adsh.data.content": "adsh.data.duplicates",
    "adsh.data.sized": "adsh.data.images.resized",
    "adsh.data.summary": "adsh.data.inspect",
    "adsh.estimator": "adsh.models.adsh",
    "adsh.experiments.setting": "adsh.experiments.experiment_config",
    "adsh.export_run": "adsh.export.onnx",
    "adsh.learn.labels": "adsh.labels",
    "adsh.learn.loop": "adsh.train.loop",
    "adsh.learn.step": "adsh.train.step",
    "adsh.onnx_coder": "adsh.encoders.onnx",
}


class _MovedModule(ModuleType):
    """A module under its old path, with the names of the new one."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(MOVED[self.__name__]), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function of the same name: importing `adsh.data.summary` replaces it in `adsh.data`."""
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **kwargs)


class _MovedFinder:
    """Finds the modules of MOVED, after all other finders; it imports nothing before it is asked for one."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None  # type: ignore[arg-type]  # a loader by its methods

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _MovedModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is {new} now: import it from there", DeprecationWarning, stacklevel=2)
        import_module(new)


def install() -> None:
    """Make the old paths importable."""
    if not any(isinstance(finder, _MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(_MovedFinder())
