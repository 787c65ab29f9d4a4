"""Tables as sources: pandas and polars frames, pyarrow tables, Parquet, Arrow and Feather files, here or at an address.

A table has a column of items (paths, the bytes of image files, images, or vectors) or, without one, columns of numbers
that are features. Its other columns of plain values are the metadata of items in an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FolderError, InputError, MissingExtraError, first_line
from ..labels import LabelSets
from ..utils.storage import file_system, translate_errors
from ..utils.urls import shown
from .arrays import ArrayDataset
from .dataset import Dataset
from .images.files import ImageFiles
from .sequence import SequenceDataset

SUFFIXES = (".parquet", ".pq", ".arrow", ".feather")
_ITEMS = (
    *("image", "img", "path", "file", "filename", "file_name", "jpg", "png", "webp"),
    *("features", "vector", "embedding", "pixel_values"),
)
LABELS = ("label", "labels", "class", "tags", "fine_label", "target")
_KEYS = ("key", "id", "__key__")


def is_table(source: Any) -> bool:
    """Return whether this is a frame of pandas or polars, or a table of pyarrow; none of them is imported."""
    package = type(source).__module__.partition(".")[0]
    return package in ("pandas", "polars", "pyarrow") and hasattr(source, "columns") and len(source.shape) == 2


def open_table(
    table: Any,
    *,
    item: str | None = None,
    label: str | bool | None = None,
    key: str | None = None,
    root: Path | None = None,
    name: str = "the table",
) -> Dataset:
    """Open the rows of a table as a dataset.

    Args:
        table: a frame of pandas or polars, or a table of pyarrow.
        item: the column of items; found among the usual names unless given, or else all columns of numbers.
        label: the column of labels, or of lists of labels; the same; False for none.
        key: the column of keys; `key`, `id` or the paths unless given.
        root: what paths are relative to; the current folder unless given.
        name: what errors call the table.

    Returns:
        The dataset, with its labels if it has any.
    """
    names = column_names(table)
    if not table.shape[0]:
        raise InputError(f"{name} has no rows: give at least one")
    at = _find(names, item, _ITEMS, name)
    label_at = None if label is False else _find(names, label if isinstance(label, str) else None, LABELS, name)
    key_at = _find(names, key, _KEYS, name)
    labels = None if label_at is None else LabelSets.of(_label_values(table, label_at))
    keys = None if key_at is None else [str(value) for value in _values(table, key_at)]
    if at is None:
        numbers = [each for each in names if each not in (label_at, key_at)]
        return ArrayDataset(_numbers(table, numbers, name), labels, keys=keys, name=name)
    values = _values(table, at)
    missing = next((row for row, value in enumerate(values) if _is_missing(value)), None)
    if missing is not None:
        raise InputError(f"{name} has no {at} in row {missing:,}: fill it, or drop the row")
    first = values[0]
    opened: Dataset
    if isinstance(first, str | Path):
        paths = [str(value) for value in values]
        opened = ImageFiles(Path() if root is None else root, paths, labels, classes=_classes(labels), name=name)
        opened.keys = paths if keys is None else opened.keys
    elif not isinstance(first, bytes | dict) and np.ndim(first) == 1:
        opened = ArrayDataset(_stacked(values, at, name), labels, keys=keys, name=name)
    else:
        opened = SequenceDataset(_Column(values), label=False, labels=labels, keys=keys, name=name)
    others = [each for each in names if each not in (at, label_at, key_at)]
    opened.columns = {each: texts for each in others if (texts := _texts(_values(table, each))) is not None}
    return opened


def open_table_file(source: str, root: Path | None = None) -> Dataset:
    """Open a Parquet, Arrow or Feather file, at a path or at an address that pyarrow knows.

    Paths in it are relative to its folder, or to `root`.
    """
    table, name = read_table(source), source.rsplit("/", 1)[-1]
    return open_table(table, root=Path(source).parent if root is None and "://" not in source else root, name=name)


def read_table(source: str) -> Any:
    """Return the pyarrow table of a file, at a path or at an address."""
    try:
        from pyarrow import feather, parquet
    except ImportError:
        raise MissingExtraError(f"{shown(source)} is read with pyarrow: pip install 'adsh[tables]'") from None
    files, path = file_system(source)
    with (
        translate_errors(lambda why: FolderError(f"{shown(source)} cannot be read ({first_line(Exception(why))})")),
        files.open_input_file(path) as file,
    ):
        if path.lower().endswith((".parquet", ".pq")):
            return parquet.read_table(file)
        return feather.read_table(file)


def column_names(table: Any) -> list[Any]:
    """Return the names of a table's columns."""
    return list(getattr(table, "column_names", None) or table.columns)


class _Column(Sequence[Any]):
    """The values of a column; each is an item, and no row of several."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]


def _find(names: Sequence[Any], given: str | None, usual: Sequence[str], name: str) -> Any:
    """Return the column that is meant; None where there is none.

    Args:
        names: of the table's columns.
        given: the name that the user gave, if any.
        usual: the names to look for otherwise.
        name: what errors call the table.
    """
    if given is not None:
        if given not in names:
            raise InputError(f"{name} has no column {given!r}: choose from {', '.join(map(str, names))}")
        return given
    return next((each for each in usual if each in names), None)


def _column(table: Any, name: Any) -> Any:
    return table.column(name) if hasattr(table, "column_names") else table[name]


def _values(table: Any, name: Any) -> list[Any]:
    """Return a column as plain values."""
    column = _column(table, name)
    values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return values


def _label_values(table: Any, name: Any) -> list[Any]:
    """Return a column of labels, with None for those that are missing; class numbers in floats become integers."""
    values = [None if _is_missing(value) else _plain(value) for value in _values(table, name)]
    if any(isinstance(value, float) for value in values):
        if any(isinstance(value, float) and not value.is_integer() for value in values):
            raise InputError(f"the column {name!r} holds numbers that are no classes: give integers or strings")
        values = [None if value is None else int(value) for value in values]
    return values


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _is_missing(value: Any) -> bool:
    return (
        value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
    )


def _numbers(table: Any, names: Sequence[Any], name: str) -> Any:
    """Return (n, d) the columns of numbers as features; raise where one holds something else.

    Args:
        table: the table.
        names: of these columns.
        name: what errors call the table.
    """
    columns = [np.asarray(_column(table, each)) for each in names]
    odd = [str(each) for each, column in zip(names, columns, strict=True) if column.dtype.kind not in "biuf"]
    if odd or not columns:
        shown = ", ".join(odd or map(str, column_names(table)))
        raise InputError(
            f"{name} has columns that are no numbers ({shown}): call the one of items image, path or features, or give "
            "columns of numbers alone"
        )
    return np.stack(columns, axis=1)


def _stacked(values: Sequence[Any], at: Any, name: str) -> Any:
    try:
        return np.asarray([np.asarray(value) for value in values])
    except ValueError:
        raise InputError(f"{name} has vectors of several lengths in {at!r}: give one length") from None


def _classes(labels: LabelSets | None) -> list[str]:
    return [] if labels is None else [str(name) for name in labels.names]


def _texts(values: Sequence[Any]) -> list[str] | None:
    """Return plain values as texts, "" where missing; None for anything else."""
    if any(not isinstance(value, str | int | float | bool) for value in values if not _is_missing(value)):
        return None
    return ["" if _is_missing(value) else str(value) for value in values]
