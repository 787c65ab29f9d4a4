"""Numbers with their nouns, for messages and pages."""

from __future__ import annotations


def count(number: float, noun: str) -> str:
    """Return a number with its noun, such as "1 bit" or "1,200 items"."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun}{'s' * (number != 1)}"


def name_of(function: object) -> str:
    """Return what a function, or the class of a callable object, is called: module and name."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
