"""Read the queries of a search and its conditions on metadata, as typed on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..data import ArrayDataset, Dataset
from ..data.images.files import ImageFiles
from ..data.npz import load_npy
from ..data.tables import SUFFIXES as TABLES
from ..data.tables import open_table_file
from ..errors import FolderError, InputError
from ..index.filters import OR

_OPERATORS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_IN = re.compile(r"^\s*([^=<>!]+?)\s+(not\s+)?in\s+(\S.*?)\s*$", re.DOTALL | re.IGNORECASE)
_OR = re.compile(r"\s+or\s+", re.IGNORECASE)
_CONDITION = re.compile(r"^\s*([^=<>!]+?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*$", re.DOTALL)


def open_queries(paths: list[str]) -> Dataset:
    """Open the images at these paths or, for .npy files, every row of features; or the rows of one table file."""
    for path in paths:
        if not Path(path).is_file():
            state = "is a folder" if Path(path).is_dir() else "does not exist"
            raise InputError(f"{path} {state}: give images, or .npy files of features")
    if len(paths) == 1 and Path(paths[0]).suffix.lower() in TABLES:
        return open_table_file(paths[0])
    arrays = [path for path in paths if Path(path).suffix == ".npy"]
    if not arrays:
        return ImageFiles(Path(), paths, None, name="the queries")
    if len(arrays) < len(paths):
        raise InputError("some queries are images and some are .npy files: give one kind at a time")
    rows, keys = [], []
    for path in arrays:
        try:
            array = load_npy(Path(path))
        except FolderError as problem:
            raise InputError(f"{path} is not a NumPy file of numbers ({problem}): give features (n, d)") from None
        if array.ndim == 0 or array.dtype.kind not in "fiu":
            raise InputError(f"{path} holds {array.dtype} of shape {array.shape}: give features (n, d)")
        array = array[None] if array.ndim == 1 else array
        rows.append(array)
        keys += [path if len(array) == 1 else f"{path}[{row}]" for row in range(len(array))]
    if len({row.shape[1:] for row in rows}) > 1:
        shapes = ", ".join(str(row.shape) for row in rows)
        raise InputError(f"the .npy files have items of different shapes ({shapes}): give features of one width")
    return ArrayDataset(np.concatenate(rows), keys=keys, name="the queries")


def parse_conditions(texts: list[str]) -> dict[str, Any] | None:
    """Parse conditions such as `class=cat` and `year>=2000` into a filter of an index; None where there are none.

    Numbers, true and false are read as such; `class=7` matches the number and the text. Conditions on one field must
    all hold: `class=cat` and `class=outdoor` are items with both tags. `class in cat,dog` is one of several values,
    `class=cat or year<1990` one of several conditions.
    """
    where: dict[str, Any] = {}
    for text in texts:
        alternatives = _OR.split(text)
        if len(alternatives) > 1 and all(_CONDITION.match(one) or _IN.match(one) for one in alternatives):
            _add_alternatives(where, [parse_conditions([one]) or {} for one in alternatives])
            continue
        listed = None if _CONDITION.match(text) else _IN.match(text)
        if listed is not None:
            field, negated, values = listed.groups()
            _add_test(where.setdefault(field, {}), "not_in" if negated else "in", _values_of(values))
            continue
        parts = _CONDITION.match(text)
        if parts is None:
            raise InputError(f"--where {text}: give FIELD=VALUE, such as class=cat, year>=2000 or class in cat,dog")
        field, operator, value = parts.groups()
        tests, test, parsed = where.setdefault(field, {}), _OPERATORS[operator], _parse_value(value)
        if test in ("eq", "ne") and parsed != value:  # 7 the number and "7" the name of a class
            test, parsed = {"eq": "in", "ne": "not_in"}[test], [parsed, value]
        _add_test(tests, test, parsed)
    return where or None


def parse_field(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE, the value as JSON where it is, else as text; None for NAME= alone."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--field {text}: give NAME=VALUE, or NAME= to remove the field")
    try:
        return name.strip(), json.loads(value) if value else None
    except ValueError:
        return name.strip(), value


def _add_test(tests: dict[str, Any], test: str, value: Any) -> None:
    """Add a comparison to those of a field: all of them must hold."""
    if test not in tests:
        tests[test] = value
    elif tests[test] != value:
        tests.setdefault("all", []).append({test: value})


def _add_alternatives(where: dict[str, Any], filters: list[dict[str, Any]]) -> None:
    """Add filters of which one must be met; with others of that kind, one of each."""
    if OR not in where:
        where[OR] = filters
        return
    where[OR] = [{OR: [left], **right} for left in where[OR] for right in filters]  # both of a pair must be met


def _values_of(text: str) -> list[Any]:
    """Return the values between commas, each as it is written and, where it reads as one, as a number."""
    values: list[Any] = []
    for part in text.split(","):
        word = part.strip()
        parsed = _parse_value(word)
        values += [parsed] if parsed == word else [parsed, word]
    return values


def _parse_value(text: str) -> Any:
    """Return a number, true, false or null where the text reads as one; else the text, without quotes around it."""
    try:
        value = json.loads(text)
        return text if isinstance(value, dict | list) else value
    except ValueError:
        return text
