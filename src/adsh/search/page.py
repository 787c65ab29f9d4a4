"""What a search found as one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..data import Dataset
from ..errors import FolderError
from ..evaluate.examples import thumbnail
from ..index import Match, Matches
from ..models.storage_format import INDEX
from .ingest import picture


def write_page(path: Path, index: str, queries: Dataset, found: Sequence[Matches], bits: int) -> None:
    """A row a query: its picture, and those of what was found, with distance, class and key."""
    sheets = (files("adsh.evaluate") / "page.css", files("adsh.search") / "page.css")
    style = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    count = len(queries)
    asked = Path(queries.keys[0]).name if count == 1 else f"{count} pictures"
    title = f"What {asked} found in {_collection(index)}"
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{style}</style></head><body><main><h1>{escape(title)}</h1>",
        f'<p class="soft">Nearest first: how many of {bits} bits differ; among equals, what looks most alike.</p>',
        *(_row(queries, at, matches, bits) for at, matches in enumerate(found)),
        "</main></body></html>\n",
    ]
    try:
        path.write_text("\n".join(parts), encoding="utf-8")
    except OSError as problem:
        raise FolderError(f"cannot write {path}: {problem.strerror or problem}") from None


def _row(queries: Dataset, at: int, matches: Matches, bits: int) -> str:
    item = queries[at]
    asked = _figure(thumbnail(item) if item.ndim == 3 else None, queries.keys[at], "the query")
    query = f'<div class="item query" title="{escape(queries.keys[at])}">{asked}</div>'
    cells = "".join(_cell(match, bits) for match in matches) or '<p class="soft">Nothing was found.</p>'
    return f'<section class="ask">{query}<div class="grid">{cells}</div></section>'


def _cell(match: Match, bits: int) -> str:
    pixels = picture(match.metadata)
    words = _words((match.metadata or {}).get("class"))
    share = 100 * max(0.0, 1 - float(match.distance) / bits)
    shown = _figure(None if pixels is None else thumbnail(pixels), match.key, words)
    near = f'<span class="bar"><i style="width:{share:.0f}%"></i></span>'
    differ = f"{match.distance:g} bits differ" if match.distance else "the same code"
    distance = f'<span class="distance">{differ}</span>'
    return f'<div class="item" title="{escape(match.key)}">{shown}{near}{distance}</div>'


def _figure(image: str | None, key: str, words: str) -> str:
    shown = f'<img src="{image}" alt="{escape(key)}">' if image else '<div class="none">no picture</div>'
    return f'{shown}<b class="label">{escape(words)}</b><span class="key">{escape(key)}</span>'


def _collection(index: str) -> str:
    """What people call the index: the name of its folder or, of one inside a model's, of that."""
    path = Path(index).absolute()
    return path.parent.name if path.name == INDEX else path.name


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "no label")
