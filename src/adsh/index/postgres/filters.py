"""A filter as an SQL condition.

The condition lets through everything that `Filter` accepts and little else. What it lets through is checked with
`Filter` afterwards, so that a filter means the same in every index.
"""

from __future__ import annotations

import json
from typing import Any, LiteralString

from psycopg import sql

from ..filters import Filter

_EXACT = 1 << 53  # up to this, integers and floats compare in SQL as they do in Python
_TEXT: LiteralString = """
CASE jsonb_typeof(metadata -> %s::text) WHEN 'string' THEN (metadata ->> %s::text) COLLATE "C" ELSE NULL END """
_NUMBER: LiteralString = """
CASE jsonb_typeof(metadata -> %s::text) WHEN 'number' THEN (metadata ->> %s::text)::numeric ELSE NULL END """
_COMPARED: dict[str, LiteralString] = {"lt": "< %s", "le": "<= %s", "gt": "> %s", "ge": ">= %s"}


def condition(where: Filter | None) -> tuple[sql.Composable, list[Any]]:
    """Return a condition on the column `metadata`, and its parameters."""
    if where is None:
        return sql.SQL("true"), []
    conditions, values = _tests(where)
    if where.alternatives:
        found = [condition(one) for one in where.alternatives]
        conditions.append(sql.SQL("({})").format(sql.SQL(" OR ").join(clause for clause, _ in found)))
        values += [value for _, some in found for value in some]
    return sql.SQL(" AND ").join(conditions) if conditions else sql.SQL("true"), values


def _tests(where: Filter) -> tuple[list[sql.Composable], list[Any]]:
    """Return the conditions that must all hold, and their parameters."""
    clauses: list[LiteralString] = []
    values: list[Any] = []
    for name, test, value in where.tests:
        if not _storable(name):
            return [sql.SQL("false")], []
        clauses.append("metadata ? %s::text")
        values.append(name)
        if test in ("eq", "in"):
            choices = list(value) if test == "in" else [value]
            if all(map(_is_plain, choices)):  # anywhere below the field: lists may be nested
                clauses.append("jsonb_path_exists(metadata -> %s::text, '$.** ? (@ == $any[*])', %s::jsonb)")
                values += [name, json.dumps({"any": choices})]
        elif test in _COMPARED and _is_plain(value) and not isinstance(value, bool | None):
            is_text = isinstance(value, str)
            clauses.append((_TEXT if is_text else _NUMBER) + _COMPARED[test])
            values += [name, name, value if is_text else repr(value)]
    return [sql.SQL(clause) for clause in clauses], values


def _is_plain(value: object) -> bool:
    """Whether SQL compares this value as Python does."""
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, bool) or value is None:
        return True
    return isinstance(value, int | float) and abs(value) <= _EXACT


def _storable(text: str) -> bool:
    """Whether PostgreSQL can store this text."""
    try:
        return "\0" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False
