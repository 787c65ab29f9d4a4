"""The constructor's arguments as scikit-learn's `get_params` and `set_params` give and take them."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from torch import nn

from ..errors import InputError


class Parameters:
    """An estimator whose constructors only store their arguments, under the same names."""

    # Other names of parameters, by which they may be given and set, and the names that `get_params` gives
    renamed: ClassVar[dict[str, str]] = {"random_state": "seed"}
    bits: int
    seed: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):  # what **shared stands for is shown by name
            cls.__signature__ = inspect.Signature(list(constructor_parameters(cls).values()))  # type: ignore[attr-defined]  # read by inspect

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        return {name: getattr(self, name) for name in constructor_parameters(type(self)) if name not in self.renamed}

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor, and return the model."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known and name not in self.renamed:
                raise InputError(f"{type(self).__name__} has no parameter {name!r}: choose from {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = constructor_parameters(type(self))
        shown = [
            f"{name}={type(value).__name__}(…)" if isinstance(value, nn.Module) else f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name != "bits" and (isinstance(value, nn.Module) or value != defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join([repr(self.bits), *shown])})"


def constructor_parameters(cls: type) -> dict[str, inspect.Parameter]:
    """Return what the constructor takes by name: `bits`, then the keywords of the class and of those above it."""
    signatures = [inspect.signature(vars(c)["__init__"]).parameters for c in cls.__mro__[:-1] if "__init__" in vars(c)]
    merged = {name: p for one in signatures for name, p in one.items() if name == "bits" or p.kind is p.KEYWORD_ONLY}
    return {"bits": merged.pop("bits"), **merged}
