"""A list of images with their labels: CSV, TSV or JSON Lines.

    path,labels,caption                             {"path": "dogs/1.jpg", "labels": ["dog", "outdoor"]}
    dogs/1.jpg,dog|outdoor,"a dog, running"         {"path": "cats/7.jpg", "label": "cat"}
    cats/7.jpg,cat,"a ""tabby"" cat"

The path column is called path, image, file, filename or file_name; the label column label, labels, class or tags.
Several labels are separated by | in CSV and TSV, or are a list in JSON Lines; none at all means: not labelled.
A CSV or TSV without those names in its first line holds path, labels in this order. Every other column is kept in
`columns`, letter by letter. Paths are relative to the manifest's own folder, or to `root`.
"""

from __future__ import annotations

import csv
import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FolderError, InputError, first_line
from ..learn.labels import LabelSets, smallest_unsigned
from .image_files import ImageFiles
from .texts import Texts

SUFFIXES = (".csv", ".tsv", ".jsonl")
_PATHS = ("path", "image", "file", "filename", "file_name")
_LABELS = ("label", "labels", "class", "tags")
_BETWEEN = "|"

Row = tuple[str, tuple[str, ...], dict[str, str]]  # path, labels, the other columns


class Manifest(ImageFiles):
    """The images of a manifest, in its order; `columns` holds what else it says of each, by name."""

    columns: dict[str, Texts]


def open_manifest(path: Path, root: Path | None = None) -> Manifest:
    """The images a .csv, .tsv or .jsonl names. Files are not looked for before they are read."""
    keys, hashes, ids = Texts(), array("q"), array("l")
    sets: dict[tuple[str, ...], int] = {}
    columns: dict[str, Texts] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = _json_rows(file, path) if path.suffix == ".jsonl" else _table_rows(file, path)
            for key, tags, others in rows:
                for name in others.keys() - columns.keys():
                    columns[name] = Texts()
                for name, column in columns.items():
                    for _ in range(len(keys) - len(column)):  # lines that came before the column did
                        column.append("")
                    column.append(others.get(name, ""))
                keys.append(key)
                hashes.append(hash(key))
                ids.append(sets.setdefault(tags, len(sets)))
    except FileNotFoundError:
        raise FolderError(f"{path} does not exist: give the path of a .csv, .tsv or .jsonl file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text: save it as UTF-8") from None
    except OSError as problem:
        raise FolderError(f"{path} cannot be read: {problem.strerror}") from None
    _refuse_repeats(keys, np.frombuffer(hashes, dtype=np.int64), path)
    classes = _in_order({tag for tags in sets for tag in tags})
    labels = _label_sets(np.asarray(ids), sets, classes) if classes else None
    made = Manifest(path.parent if root is None else root, keys, labels, classes=classes, name=path.name)
    made.columns = columns
    return made


def _table_rows(file: Any, path: Path) -> Iterator[Row]:
    """CSV or TSV, with quotes around fields that hold the separator, a quote or a new line."""
    rows = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
    at_path, at_labels, others = 0, 1, {}
    width = 0
    tag_sets: dict[str, tuple[str, ...]] = {}  # the labels' text -> the labels: few differ
    try:
        for row in rows:
            if not row:
                continue
            if not width:
                width = len(row)
                names = [name.strip().lower() for name in row]
                if set(names) & set(_PATHS):
                    at_path = next(names.index(name) for name in _PATHS if name in names)
                    at_labels = next((names.index(name) for name in _LABELS if name in names), width)
                    others = {i: row[i].strip() for i in range(width) if i not in (at_path, at_labels)}
                    continue
                if width > 2:
                    raise InputError(
                        f"{path} starts with {width} columns and no names: name them in the first line, path and labels"
                    )
            if len(row) != width:
                raise InputError(
                    f"{path} line {rows.line_num} has {len(row)} columns, but the first line {width}: "
                    'put quotes around a field that holds the separator, and "" for a quote in it'
                )
            text = row[at_labels] if at_labels < width else ""
            tags = tag_sets.get(text)
            if tags is None:
                tags = tag_sets[text] = _tags(text.split(_BETWEEN))
            yield _path(row[at_path], path, rows.line_num), tags, {name: row[i] for i, name in others.items()}
    except csv.Error as problem:
        raise InputError(f"{path} line {rows.line_num}: {first_line(problem)}; close every quote") from None


def _json_rows(file: Any, path: Path) -> Iterator[Row]:
    """JSON Lines: an object a line."""
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as problem:
            raise InputError(
                f"{path} line {number} is no JSON ({first_line(problem)}): write an object a line"
            ) from None
        if not isinstance(row, dict) or not any(name in row for name in _PATHS):
            raise InputError(f'{path} line {number} names no path: write {{"path": "a.jpg", "labels": ["dog"]}}')
        key = row.pop(next(name for name in _PATHS if name in row))
        given = row.pop(next((name for name in _LABELS if name in row), ""), None)
        tags = given if isinstance(given, list) else [] if given is None else [given]
        if not isinstance(key, str) or not all(isinstance(tag, str | int) for tag in tags):
            raise InputError(
                f"{path} line {number}: a path is a text, and labels are a text, a number or a list of them"
            )
        others = {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()}
        yield _path(key, path, number), _tags([str(tag) for tag in tags]), others


def _tags(texts: list[str]) -> tuple[str, ...]:
    return tuple(sorted({text.strip() for text in texts} - {""}))


def _path(text: str, manifest: Path, line: int) -> str:
    if not text or "\0" in text:
        raise InputError(f"{manifest} line {line} has no path: give the image's path")
    return text


def _in_order(classes: set[str]) -> list[str]:
    """Sorted: by number where all are numbers, so that 10 comes after 9."""
    numbers = all(name.isascii() and name.isdigit() for name in classes)
    return sorted(classes, key=lambda name: (int(name), name) if numbers else (0, name))


def _label_sets(ids: Any, sets: dict[tuple[str, ...], int], classes: list[str]) -> LabelSets:
    number = {name: i for i, name in enumerate(classes)}
    numbered = [sorted(number[tag] for tag in tags) for tags in sets]
    return LabelSets(ids.astype(smallest_unsigned(len(sets))), numbered).called(classes)


def _refuse_repeats(keys: Texts, hashes: Any, path: Path) -> None:
    """A path that is listed twice, found by hash: no set of a million strings is made."""
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(np.diff(hashes[order]) == 0)
    for first, second in zip(order[same].tolist(), order[same + 1].tolist(), strict=True):
        if keys[first] == keys[second]:
            raise InputError(
                f"{path} lists {keys[first]!r} twice, as images {first + 1:,} and {second + 1:,}: "
                "keep one line, with all its labels"
            )
