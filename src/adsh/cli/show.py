"""What a command prints: facts in aligned lines, tables, or one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..utils.printable import printable
from ..utils.words import count

_LISTED = 20  # items named one by one


class Stopped(Exception):
    """Ctrl-C, or a request to stop; its text says how to continue."""


def as_json(values: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output."""
    line(json.dumps(values, indent=1, ensure_ascii=False, default=str))


def line(text: str) -> None:
    """Print a text, which may be a stranger's key, such that a terminal only shows it."""
    print(printable(text))


def facts(values: Mapping[str, Any]) -> None:
    """Print names and values, one pair per line."""
    width = max(len(name) for name in values)
    for name, value in values.items():
        line(f"{name:<{width}}  {value}")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose columns are as wide as they need; columns of figures are aligned right."""
    widths = [max(len(row[i]) for row in (headings, *rows)) for i in range(len(headings))]
    right = [all(row[i][:1].isdigit() for row in rows) for i in range(len(headings))]
    for row in (headings, *rows):
        cells = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        line("  ".join(cells).rstrip())


def describe_reading(read: Mapping[str, Any]) -> str:
    """Return what the reading of images found, on one line."""
    bad, removed = len(read["unreadable"]), len(read["duplicates_removed"])
    parts = [f"{read['items']:,}", *[f"{bad:,} of them cannot be read and are left out"] * bool(bad)]
    copies = "copy of a query is" if removed == 1 else "copies of queries are"
    parts += [f"{removed:,} {copies} left out"] * bool(removed)
    parts += [f"{count(read['duplicates'], 'duplicate')} in the database"] * bool(read["duplicates"])
    return f"{', '.join(parts)}; {read['kept']}"


def list_unreadable(read: Mapping[str, Any]) -> None:
    """Print every file that cannot be read, one per line."""
    for item in read.get("unreadable", ()):
        line(f"  {item['key']}: {item['reason']}")


def list_left_out(read: Mapping[str, Any], log: object) -> None:
    """Print the files that cannot be read and the copies of queries, one per line; of many the first, and the log."""
    unreadable = [f"{item['key']}: {item['reason']}" for item in read.get("unreadable", ())]
    copies = [f"{item['key']}: a copy of the query {item['copy_of']}" for item in read.get("copies", ())]
    list_some(unreadable, f"{log} has them")
    list_some(copies, f"{log} has them")


def list_some(texts: Sequence[str], where: str) -> None:
    """Print texts one per line; of many the first, and where the others are."""
    for text in texts[:_LISTED]:
        line(f"  {text}")
    if len(texts) > _LISTED:
        line(f"  and {len(texts) - _LISTED:,} more: {where}")
