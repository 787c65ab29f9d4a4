"""What a search is asked with: pictures or rows of features, and conditions on metadata, as people type them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..data import ArrayDataset, Dataset
from ..data.images.files import ImageFiles
from ..errors import InputError

_OPERATORS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_CONDITION = re.compile(r"^\s*([^=<>!]+?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*$", re.DOTALL)


def open_queries(paths: list[str]) -> Dataset:
    """The pictures at these paths or, for .npy files, every row of features."""
    for path in paths:
        if not Path(path).is_file():
            state = "is a folder" if Path(path).is_dir() else "does not exist"
            raise InputError(f"{path} {state}: give pictures, or .npy files of features")
    arrays = [path for path in paths if Path(path).suffix == ".npy"]
    if not arrays:
        return ImageFiles(Path(), paths, None, name="the queries")
    if len(arrays) < len(paths):
        raise InputError("some queries are pictures and some are .npy files: ask with one kind at a time")
    rows, keys = [], []
    for path in arrays:
        try:
            array = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as problem:
            raise InputError(f"{path} is no NumPy file of numbers ({problem}): give features (n, d)") from None
        if array.ndim == 0 or array.dtype.kind not in "fiu":
            raise InputError(f"{path} holds {array.dtype} of shape {array.shape}: give features (n, d)")
        array = array[None] if array.ndim == 1 else array
        rows.append(array)
        keys += [path if len(array) == 1 else f"{path}[{at}]" for at in range(len(array))]
    if len({row.shape[1:] for row in rows}) > 1:
        shapes = ", ".join(str(row.shape) for row in rows)
        raise InputError(f"the .npy files have items of unlike shapes ({shapes}): give features of one width")
    return ArrayDataset(np.concatenate(rows), keys=keys, name="the queries")


def conditions(texts: list[str]) -> dict[str, Any] | None:
    """`class=cat`, `year>=2000` as a filter of an index; None for none. Numbers, true and false are read as such."""
    wanted: dict[str, Any] = {}
    for text in texts:
        parts = _CONDITION.match(text)
        if parts is None:
            raise InputError(f"--where {text}: give FIELD=VALUE, such as class=cat, or year>=2000")
        field, operator, value = parts.groups()
        tests, test, read = wanted.setdefault(field, {}), _OPERATORS[operator], _value(value)
        if test in ("eq", "ne") and read != value:  # 7 the number and "7" the name of a class
            test, read = {"eq": "in", "ne": "not_in"}[test], [read, value]
        if test in tests:
            raise InputError(f"--where {text}: {field}{operator} is given twice")
        tests[test] = read
    return wanted or None


def _value(text: str) -> Any:
    """A number, true, false or null where it reads as one; else the text, without quotes around it."""
    try:
        value = json.loads(text)
        return text if isinstance(value, dict | list) else value
    except ValueError:
        return text
