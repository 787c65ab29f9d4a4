"""Keep the earlier names of keyword parameters accepted."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def accepts_earlier(**names: str) -> Callable[[Function], Function]:
    """Return a decorator for a function whose parameters were renamed: `@accepts_earlier(choose="tune")`.

    Args:
        **names: today's name of a parameter by its earlier one.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for earlier, name in names.items():
                if earlier in kwargs:
                    if name in kwargs:
                        raise TypeError(f"{earlier} is the earlier name of {name}: give one of them")
                    kwargs[name] = kwargs.pop(earlier)
            return function(*args, **kwargs)

        call.earlier_names = names  # type: ignore[attr-defined]  # for the check of public names
        return call  # type: ignore[return-value]  # of the same signature

    return decorate
