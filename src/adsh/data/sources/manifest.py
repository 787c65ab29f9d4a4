"""A list of images with their labels: CSV, TSV or JSON Lines.

    path,labels,caption                             {"path": "dogs/1.jpg", "labels": ["dog", "outdoor"]}
    dogs/1.jpg,dog|outdoor,"a dog, running"         {"path": "cats/7.jpg", "label": "cat"}
    cats/7.jpg,cat,"a ""tabby"" cat"

The path column is called path, image, file, filename or file_name; the label column label, labels, class or tags.
Several labels are separated by | in CSV and TSV, or are a list in JSON Lines; none at all means
unlabelled. A CSV or TSV without those names in its first line holds path, labels in this order. Every other column is
kept in `columns`, as it is written, and is the metadata of items in an index: as numbers where a column holds nothing
else. Paths are relative to the manifest's own folder, or to `root`.
"""

from __future__ import annotations

import csv
import json
import re
from array import array
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ...errors import FolderError, InputError, first_line
from ...labels import LabelSets, smallest_unsigned
from ...utils.reading import parse_json, regular_file
from ..images.files import ImageFiles
from ..texts import Texts

SUFFIXES = (".csv", ".tsv", ".jsonl")
_PATHS = ("path", "image", "file", "filename", "file_name")
_LABELS = ("label", "labels", "class", "tags")
_BETWEEN = "|"
_TAGS = {str, int}  # what a label may be in JSON
_DIGITS = 18  # of a class's number: with more it is a name
_NUMBER = re.compile(r"\s*-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?\s*")  # 007 and longer ones are names
_MOST_COLUMNS = 1024  # of JSON Lines besides path and labels: each gets a field in every line, and may be in one alone
_AT_ONCE = 4096  # lines: columns are read block by block, several times faster than line by line

# Paths, labels (a text with | in it, or a tuple of labels), and the other columns of some lines.
Block = tuple[list[str], Sequence[Hashable], dict[str, list[str]]]


class Manifest(ImageFiles):
    """The images of a manifest, in its order; `columns` holds its other columns, by name."""

    columns: dict[str, Texts]

    def metadata(self, index: int) -> dict[str, Any]:
        """Return what the other columns hold for an image; empty fields are left out."""
        written = {name: column[index] for name, column in self.columns.items() if name}
        filled = {name: text for name, text in written.items() if text.strip()}
        return {
            name: json.loads(text.strip()) if name in self._numeric else text  # JSON has fewer kinds of space
            for name, text in filled.items()
        }

    @cached_property
    def _numeric(self) -> frozenset[str]:
        """The columns that hold numbers and nothing else."""
        return frozenset(
            name
            for name, column in self.columns.items()
            if all(_NUMBER.fullmatch(text) for text in column if text.strip())
        )


class _SetNumbers(dict[Hashable, int]):
    """The number of each label set, by the way it is written: few are distinct, so few are parsed."""

    def __init__(self) -> None:
        self.sets: dict[tuple[str, ...], int] = {}

    def __missing__(self, written: Hashable) -> int:
        parts = written.split(_BETWEEN) if isinstance(written, str) else [str(tag) for tag in written]  # type: ignore[attr-defined]  # a tuple
        tags = tuple(sorted({part.strip() for part in parts} - {""}))
        number = self[written] = self.sets.setdefault(tags, len(self.sets))
        return number


def open_manifest(path: Path, root: Path | None = None) -> Manifest:
    """Open the images that a .csv, .tsv or .jsonl names. Missing files are found when they are read."""
    keys, hashes, ids, numbers = Texts(), array("q"), array("l"), _SetNumbers()
    columns: dict[str, Texts] = {}
    try:
        with open(path, encoding="utf-8-sig", newline="", opener=regular_file) as file:
            read_blocks = _json_blocks if path.suffix.lower() == ".jsonl" else _table_blocks
            for paths, labels, others in read_blocks(file, path):
                for name in others.keys() | columns.keys():
                    column = columns.setdefault(name, Texts())
                    column.extend([""] * (len(keys) - len(column)))  # lines that came before the column did
                    column.extend(others.get(name, [""] * len(paths)))
                keys.extend(paths)
                hashes.extend(map(hash, paths))
                ids.extend(map(numbers.__getitem__, labels))
    except FileNotFoundError:
        raise FolderError(f"{path} does not exist: give the path of a .csv, .tsv or .jsonl file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text: save it as UTF-8") from None
    except OSError as problem:
        raise FolderError(f"{path} cannot be read: {problem.strerror or problem}") from None
    _refuse_repeats(keys, np.frombuffer(hashes, dtype=np.int64), path)
    classes = _in_order({tag for tags in numbers.sets for tag in tags})
    labelled = _label_sets(np.asarray(ids), numbers.sets, classes) if classes else None
    manifest = Manifest(path.parent if root is None else root, keys, labelled, classes=classes, name=path.name)
    manifest.columns = columns
    return manifest


def _table_blocks(file: TextIO, path: Path) -> Iterator[Block]:
    """Read CSV or TSV, with quotes around fields that hold the separator, a quote or a new line."""
    rows = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
    try:
        first = next((row for row in rows if row), None)
        if first is None:
            return
        width, names = len(first), [name.strip().lower() for name in first]
        others: dict[int, str] = {}
        headed = bool(set(names) & set(_PATHS))
        at_path = next((names.index(name) for name in _PATHS if name in names), 0)
        at_labels = next((names.index(name) for name in _LABELS if name in names), width) if headed else 1
        if headed:
            others = {i: first[i].strip() for i in range(width) if i not in (at_path, at_labels)}
        elif width > 2:
            raise InputError(f"{path} has {width} columns and no names: name them in the first line, path and labels")
        filled = chain([] if headed else [first], filter(None, rows))
        while block := list(islice(filled, _AT_ONCE)):
            if any(len(row) != width for row in block):
                odd = next(row for row in block if len(row) != width)
                raise InputError(
                    f"{path} has {len(odd)} columns in the line of {odd[0][:60]!r}, but {width} in the first: "
                    'put quotes around a field that holds the separator, and "" for a quote in it'
                )
            paths = [row[at_path] for row in block]
            if not all(paths):
                raise InputError(
                    f"{path} has a line without a path before line {rows.line_num + 1:,}: give each image's"
                )
            labels = [row[at_labels] for row in block] if at_labels < width else [""] * len(block)
            yield paths, labels, {name: [row[i] for row in block] for i, name in others.items()}
    except csv.Error as problem:
        raise InputError(f"{path} line {rows.line_num}: {first_line(problem)}; close every quote") from None


def _json_blocks(file: TextIO, path: Path) -> Iterator[Block]:
    """Read JSON Lines: an object a line. A block is checked as a whole, and line by line only to find a wrong line."""
    start, seen = 1, set[str]()
    while lines := list(islice(file, _AT_ONCE)):
        written = [line for line in lines if not line.isspace()]
        try:
            rows = parse_json(f"[{','.join(written)}]")
        except ValueError:
            rows = []
        if len(rows) != len(written) or set(map(type, rows)) - {dict}:
            raise _wrong_line(lines, start, path)
        columns = set().union(*rows)
        at_path, at_labels = _names(rows, columns, _PATHS), _names(rows, columns, _LABELS)
        paths = [row.pop(name, "") for row, name in zip(rows, at_path, strict=True)]
        values = [row.pop(name, None) for row, name in zip(rows, at_labels, strict=True)]
        labels = [tuple(tags) if type(tags) is list else () if tags is None else (tags,) for tags in values]
        if not all(paths) or {*map(type, paths)} - {str} or {*map(type, chain.from_iterable(labels))} - _TAGS:
            raise _wrong_line(lines, start, path)
        others = columns - {*at_path, *at_labels}
        seen |= others
        if len(seen) > _MOST_COLUMNS:
            raise InputError(f"{path} has more than {_MOST_COLUMNS:,} columns: leave out what no search needs")
        yield paths, labels, {name: [_text(row.get(name, "")) for row in rows] for name in others}
        start += len(lines)


def _names(rows: list[dict[str, Any]], columns: set[str], usual: Sequence[str]) -> list[str]:
    """Return which of the usual names each row has.

    Args:
        rows: each by column.
        columns: of all rows together.
        usual: the names to look for, in order.

    Returns:
        One name for each row; "" where it has none of them.
    """
    present = [name for name in usual if name in columns]
    if len(present) == 1:
        return present * len(rows)
    return [next((name for name in present if name in row), "") for row in rows]


def _wrong_line(lines: list[str], start: int, path: Path) -> InputError:
    for number, line in enumerate(lines, start=start):
        try:
            row = {} if line.isspace() else parse_json(line)
        except ValueError as problem:
            return InputError(f"{path} line {number} is no JSON ({first_line(problem)}): write an object a line")
        if not line.isspace() and not _is_row(row):
            break
    return InputError(
        f'{path} line {number} is not as {{"path": "a.jpg", "labels": ["dog"]}}: '
        "a path is a text, and labels a text, a number, or a list of them"
    )


def _is_row(row: Any) -> bool:
    if type(row) is not dict:
        return False
    key = next((row[name] for name in _PATHS if name in row), "")
    tags = next((row[name] for name in _LABELS if name in row), None)
    listed = tags if isinstance(tags, list) else [] if tags is None else [tags]
    return type(key) is str and key != "" and set(map(type, listed)) <= _TAGS


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _in_order(classes: set[str]) -> list[str]:
    """Sort class names, by number where all are numbers, so that 10 comes after 9."""
    numbers = all(name.isascii() and name.isdigit() and len(name) <= _DIGITS for name in classes)
    return sorted(classes, key=lambda name: (int(name), name) if numbers else (0, name))


def _label_sets(ids: Any, sets: dict[tuple[str, ...], int], classes: list[str]) -> LabelSets:
    number = {name: i for i, name in enumerate(classes)}
    numbered = [sorted(number[tag] for tag in tags) for tags in sets]
    return LabelSets(ids.astype(smallest_unsigned(len(sets))), numbered).with_names(classes)


def _refuse_repeats(keys: Texts, hashes: Any, path: Path) -> None:
    """Raise if a path is listed twice. Compares hashes, so that no set of a million strings is built.

    Args:
        keys: the paths.
        hashes: of each path.
        path: of the list, for the error.
    """
    order = np.argsort(hashes, kind="stable")
    equal = np.flatnonzero(np.diff(hashes[order]) == 0)
    for first, second in zip(order[equal].tolist(), order[equal + 1].tolist(), strict=True):
        if keys[first] == keys[second]:
            raise InputError(
                f"{path} lists {keys[first]!r} twice, as images {first + 1:,} and {second + 1:,}: "
                "keep one line, with all its labels"
            )
