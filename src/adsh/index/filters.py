"""Filters on metadata: `{"class": "cat"}`, `{"year": {"ge": 2000, "lt": 2010}}`, `{"class": {"in": ["cat", "dog"]}}`.

An item must meet all conditions. One that lacks a field, or holds another type there, does not; a list meets a
condition of equality if one of its elements does. `{"tags": {"all": ["cat", "outdoor"]}}` are several conditions on one
field: the item has both tags. `{"$or": [{"class": "cat"}, {"year": {"lt": 1990}}]}` are alternatives, each a filter
of its own, of which one must be met; conditions next to them must be met too.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors import InputError

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_ALL = "all"  # a list of conditions, each a value or comparisons
OR = "$or"  # a list of filters, in place of a field
_DEEPEST = 8  # filters in filters
_PLAIN = frozenset((str, int, float, bool, type(None)))
_OPERATORS = ("eq", "ne", "in", "not_in", _ALL, *_COMPARISONS)


class Filter:
    """Conditions on the metadata of the items that a search returns."""

    name: str
    alternatives: list[Filter]

    def __init__(self, conditions: object, depth: int = 0) -> None:
        if not isinstance(conditions, dict) or not all(isinstance(name, str) for name in conditions):
            raise InputError(f'where={conditions!r}: give a dictionary such as {{"class": "cat"}}')
        self.tests = [  # (field, comparison, value): all must hold
            (name, test, value)
            for name, condition in conditions.items()
            if name != OR
            for test, value in _tests(name, condition)
        ]
        self.alternatives = _alternatives(conditions[OR], depth) if OR in conditions else []  # one must hold
        self.has_conditions = bool(self.tests or self.alternatives)
        self.name = repr((self.tests, [one.name for one in self.alternatives]))  # equal for equal conditions
        self._tests = [
            (name, test, _OneOf(value) if test in ("in", "not_in") else value) for name, test, value in self.tests
        ]
        # The stored JSON must contain these for equality with a text: most items are rejected without being parsed.
        self._needles = [json.dumps(value) for _, test, value in self.tests if test == "eq" and isinstance(value, str)]
        self.required = [*self._needles, *(json.dumps(name) for name, _, _ in self.tests)]  # the names as well

    def accepts(self, text: str) -> bool:
        """Whether metadata, as `validation.metadata_texts` wrote it, meets every condition."""
        for needle in self._needles:
            if needle not in text:
                return False
        return self.holds(json.loads(text) if text else {})

    def holds(self, metadata: dict[str, Any]) -> bool:
        """Whether metadata meets every condition."""
        if not all(name in metadata and _holds(test, metadata[name], value) for name, test, value in self._tests):
            return False
        return not self.alternatives or any(one.holds(metadata) for one in self.alternatives)


def _alternatives(filters: object, depth: int) -> list[Filter]:
    """Return the filters of which one must be met."""
    if not isinstance(filters, list | tuple) or not filters:
        raise InputError(f'where: "{OR}" takes a list of filters, not {filters!r:.60}')
    if depth >= _DEEPEST:
        raise InputError(f'where: "{OR}" is nested deeper than {_DEEPEST} times: write it with fewer')
    found = [Filter(one, depth + 1) for one in filters]
    if not all(one.has_conditions for one in found):
        raise InputError(f'where: an alternative of "{OR}" has no condition: leave it out')
    return found


class _OneOf:
    """A set of values, looked up in constant time."""

    def __init__(self, values: Iterable[Any]) -> None:
        plain = (str, int, float, type(None))
        self._plain = {(isinstance(one, bool), one) for one in values if isinstance(one, plain)}
        self._values = {one for _, one in self._plain}
        self._others = [one for one in values if not isinstance(one, plain)]

    def holds(self, found: Any) -> bool:
        """Whether a value is one of them, or a list that contains one of them."""
        return self._holds_plain(found) or any(_equal(found, one) for one in self._others)

    def _holds_plain(self, found: Any) -> bool:
        if isinstance(found, list):
            if _is_flat(found) and self._values.isdisjoint(
                found
            ):  # 1 and True are equal there, so others are looked at
                return False
            return any(map(self._holds_plain, found))
        return isinstance(found, str | int | float | None) and (isinstance(found, bool), found) in self._plain


def _tests(name: str, condition: object) -> Iterator[tuple[str, Any]]:
    """Yield each comparison of a condition with its value; those of `all` one after the other."""
    if not isinstance(condition, dict):
        yield "eq", condition
        return
    if not condition:
        raise InputError(f"where: {name!r} has no condition: give a value, or a comparison such as {{'ge': 1}}")
    for test, value in condition.items():
        if test not in _OPERATORS:
            raise InputError(f"where: {test!r} of {name!r} is not a comparison: use {', '.join(_OPERATORS)}")
        if test in ("in", "not_in", _ALL) and not isinstance(value, list | tuple | set):
            raise InputError(f'where: "{test}" of {name!r} takes a list, not {value!r}')
        if test != _ALL:
            yield test, value
            continue
        if any(isinstance(one, dict) and _ALL in one for one in value):
            raise InputError(f'where: "all" of {name!r} holds another "all": put their conditions into one list')
        for one in value:
            yield from _tests(name, one)


def _holds(test: str, found: Any, value: Any) -> bool:
    if test == "eq":
        return _equal(found, value)
    if test == "ne":
        return not _equal(found, value)
    if test in ("in", "not_in"):
        return bool(value.holds(found) == (test == "in"))
    try:
        return isinstance(found, bool) == isinstance(value, bool) and bool(_COMPARISONS[test](found, value))
    except TypeError:
        return False


def _equal(found: Any, value: Any) -> bool:
    if isinstance(found, list) and not isinstance(value, list):
        if _is_flat(found) and value not in found:
            return False
        return any(_equal(one, value) for one in found)
    return isinstance(found, bool) == isinstance(value, bool) and bool(found == value)


def _is_flat(values: list[Any]) -> bool:
    """Whether none of them holds others: such a list, of thousands perhaps, need not be looked at one by one."""
    return _PLAIN.issuperset(map(type, values))
