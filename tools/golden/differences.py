"""What of a record is missing or different now. What is new is fine."""

from __future__ import annotations

from typing import Any

from .normal import VARIES, varies

UNKNOWN_DEFAULT = "an option"  # of an option in a TypedDict: the name is known, its default is not


def differences(before: Any, now: Any, where: str = "") -> list[str]:
    """A line for everything that was there and is not, or is another."""
    if isinstance(before, str) and before.startswith(VARIES):
        same = now == before or varies(now) == before
        return [] if same else [f"{where}: {_short(now)} where the type was {before[len(VARIES) : -1]}"]
    if isinstance(before, dict) and isinstance(now, dict):
        found = []
        for name, value in before.items():
            path = f"{where} > {name}" if where else name
            found += differences(value, now[name], path) if name in now else [f"{path}: is missing"]
        return found
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [line for at, (old, new) in enumerate(zip(before, now, strict=True))
                for line in differences(old, new, f"{where} [{at}]")]  # fmt: skip
    same = (type(before) is type(now) and before == now) or now == UNKNOWN_DEFAULT
    return [] if same else [f"{where}: was {_short(before)}, is {_short(now)}"]


def settled(one: Any, other: Any) -> Any:
    """A record of two equal runs: what differs between them is kept as a type alone."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: settled(value, other[name]) for name, value in one.items() if name in other}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [settled(*pair) for pair in zip(one, other, strict=True)]
    return one if type(one) is type(other) and one == other else varies(one)


def unsettled(record: Any, where: str = "") -> list[str]:
    """Where a record has types alone."""
    if isinstance(record, dict):
        return [line for name, value in record.items() for line in unsettled(value, f"{where} > {name}")]
    if isinstance(record, list):
        return [line for at, value in enumerate(record) for line in unsettled(value, f"{where} [{at}]")]
    return [where] if isinstance(record, str) and record.startswith(VARIES) else []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}…"
