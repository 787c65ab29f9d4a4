"""The files of a rendered experiment: rows as JSON, tables as Markdown and LaTeX, figures as PNG."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import FolderError
from ..evaluate import plots
from .cell import Record
from .rendering import Rendering
from .tables import latex, markdown

_FIRST_KEYS = (  # in the rows of every experiment, None where it has no such value
    "method", "bits", "seed", "map_expected", "map_stable", "map_network", "paper", "seconds", "device", "commit"
)  # fmt: skip
_MORE_KEYS = (
    "map_new", "map_interval", "map_new_interval", "map_classes", "map_new_classes", "chance",
    "network", "preset", "options", "points", "protocol", "map_lowest", "map_highest", "distinct_codes", "database",
    "k", "new", "labelled", "unlabelled", "learned", "unseen_labelled", "unseen_unlabelled", "rows",
    "classes", "ratio", "head", "smallest", "largest",
)  # fmt: skip
_CELLS_ONLY = ("ks", "precision", "radius_precision", "radius_recall", "cases")  # curves and examples


def write_experiment(
    name: str, records: Sequence[Record], rendering: Rendering, out: Path, *, tex: bool = False
) -> list[Path]:
    """Write rows, tables and figures of an experiment.

    Args:
        name: The name of the experiment, which is that of its files.
        records: The records of its cells.
        rendering: Its tables and figures.
        out: The folder to write to.
        tex: Write the tables as LaTeX too.

    Returns:
        The files written.
    """
    rows = [_row(record) for record in (records if rendering.rows is None else rendering.rows)]
    lines = ",\n".join(json.dumps(row) for row in rows)
    captions = [f"![{caption}]({figure}.png)\n\n*{caption}*\n" for figure, (caption, _) in rendering.figures.items()]
    files: dict[str, str | bytes] = {
        f"{name}.json": f"[\n{lines}\n]\n",
        f"{name}.md": "\n".join([*map(markdown, rendering.tables), *captions]),
    }
    if tex:
        files[f"{name}.tex"] = "\n".join(map(latex, rendering.tables))
    files |= {f"{figure}.png": plots.as_png(image) for figure, (_, image) in rendering.figures.items()}
    return [write_file(out / file, content) for file, content in files.items()]


def write_file(path: Path, content: str | bytes) -> Path:
    """Write a file, creating its folder, and return its path."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as problem:
        raise FolderError(f"cannot write {path}: {problem.strerror or problem}") from None
    return path


def _row(record: Record) -> Record:
    """Return a record without its curves and examples, its keys in the order that all files have."""
    first: dict[str, Any] = dict.fromkeys(_FIRST_KEYS)
    present = {key: record[key] for key in (*_MORE_KEYS, *sorted(record)) if key in record}
    return first | {key: value for key, value in present.items() if key not in _CELLS_ONLY}
