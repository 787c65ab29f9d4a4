"""Refuse JSON that would take long to validate, by counting before anything is built from it.

A large body is counted while it arrives, so that most of one with too many values is never read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic_core import from_json

from ..engine.problems import Problem, too_large

_SHORT = 1 << 12  # bytes: whatever such a body holds, validating it takes no time
_LISTED = "items"  # the one list of a body
_MARKS = np.frombuffer(b",[{", dtype=np.uint8)


@dataclass(frozen=True)
class JsonLimits:
    """What a body of JSON may hold."""

    max_bytes: int
    max_values: int  # at any depth
    max_items: int = 0  # of the list `items`


SMALL_BODY = JsonLimits(1 << 20, 10_000)  # of a search or a single item
_VALUES_PER_ITEM = 256  # of a batch, on average


def batch_limits(max_bytes: int, max_items: int) -> JsonLimits:
    """Return the limits of a batch of so many items."""
    return JsonLimits(max_bytes, max(SMALL_BODY.max_values, _VALUES_PER_ITEM * max_items), max_items)


def check_json(body: bytes, names: Container[str], limits: JsonLimits) -> dict[str, Any] | None:
    """Refuse a body that exceeds the limits, or has a field of another name.

    Args:
        body: The JSON; what is not JSON is left to the validation.
        names: The fields that it may have.
        limits: What it may hold.

    Returns:
        The values of a long body, which need not be parsed again; None of a short one, and of what is no object.
    """
    if len(body) > limits.max_bytes:
        raise too_large(limits.max_bytes)
    if len(body) <= _SHORT:
        return None
    check_values(body, limits.max_values)
    try:
        values = from_json(body)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    for name in values:
        if name not in names:
            raise Problem(422, f"{name[:40]} is not known here: leave it out")
    _check_items(values.get(_LISTED), limits.max_items)
    return values


class ArrivingValues:
    """The values of a body that is being received.

    Args:
        most: How many it may hold.
    """

    def __init__(self, most: int) -> None:
        self._most = self._checked = most
        self._count = 0

    async def check(self, pieces: list[bytes]) -> None:
        """Raise if the pieces hold too many values; called for each new one, the last of them."""
        self._count += _count(pieces[-1])
        if self._count > self._checked:  # perhaps only in texts: looked at exactly, at each doubling
            self._checked = 2 * self._count
            await asyncio.to_thread(check_values, b"".join(pieces), self._most)


def check_values(body: bytes, most: int) -> None:
    """Raise if JSON, or the beginning of it, holds more than `most` values."""
    if has_more_values(body, most):
        detail = f"the JSON holds more than {most:,} values: send less at a time"
        raise Problem(422, detail, {"Connection": "close"})


def _check_items(items: Any, max_items: int) -> None:
    if max_items and isinstance(items, list) and len(items) > max_items:
        raise Problem(422, f"{len(items):,} items: send at most {max_items:,} at a time")


def has_more_values(body: bytes, most: int) -> bool:
    """Return whether JSON holds more than `most` values, those in lists and objects counted too.

    There is a comma or an opening bracket for each value but the first, and one more for an empty list or object.
    Counting those of texts as well takes no time and is enough for most bodies; only where that is too many are the
    texts left out.
    """
    if _count(body) <= most:
        return False
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")  # no escaped quote is left
    if plain.count(b'"') > 4 * most + 4:  # two quotes a text, two texts a value: its name and itself
        return True
    octets = np.frombuffer(plain, dtype=np.uint8)
    outside = ~np.logical_xor.accumulate(octets == ord('"'))
    return int(np.count_nonzero(outside & np.isin(octets, _MARKS))) > most


def _count(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")
