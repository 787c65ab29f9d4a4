"""Write the results of a search as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..data import Dataset
from ..errors import FolderError
from ..evaluate.examples import thumbnail
from ..index import Match, Matches
from ..models.storage_format import INDEX
from ..utils.html import html_page
from ..utils.words import count
from .item_metadata import load_image

_SIDE = 288  # pixels of a thumbnail: drawn some 140 wide, so that screens of twice the density show it sharply


def write_page(
    path: Path,
    index: str,
    queries: Dataset,
    found: Sequence[Matches],
    bits: int,
    nearest: Mapping[int, int | None] | None = None,
) -> None:
    """Write a page with a row for each query: its image, and those of its matches with distance, class and key.

    Args:
        path: The file to write.
        index: Where the index is, as it may be shown.
        queries: The query items.
        found: The matches of each query.
        bits: The length of the codes.
        nearest: The distance of the nearest item for each query, by number, that a radius finds nothing for.
    """
    style = files("adsh.search").joinpath("page.css").read_text(encoding="utf-8")
    count = len(queries)
    query_name = Path(queries.keys[0]).name if count == 1 else f"{count} images"
    title = f"Matches of {query_name} in {_collection(index)}"
    body = [
        f'<p class="soft">Nearest first, by how many of {bits} bits differ; ties by visual similarity.</p>',
        *(_row(queries, row, matches, bits, (nearest or {}).get(row)) for row, matches in enumerate(found)),
    ]
    try:
        path.write_text(html_page(title, body, style), encoding="utf-8")
    except OSError as problem:
        raise FolderError(f"cannot write {path}: {problem.strerror or problem}") from None


def _row(queries: Dataset, row: int, matches: Matches, bits: int, nearest: int | None) -> str:
    item, key = queries[row], queries.keys[row]
    figure = _figure(thumbnail(item, _SIDE) if item.ndim == 3 else None, key, "query")
    query = f'<div class="item query" title="{escape(key)}">{figure}</div>'
    cells = "".join(_cell(match, bits) for match in matches) or f'<p class="soft">{_nothing(nearest)}</p>'
    return f'<section class="ask">{query}<div class="grid">{cells}</div></section>'


def _cell(match: Match, bits: int) -> str:
    pixels = load_image(match.metadata)
    label = _label((match.metadata or {}).get("class"))
    share = 100 * max(0.0, 1 - float(match.distance) / bits)
    figure = _figure(None if pixels is None else thumbnail(pixels, _SIDE), match.key, label)
    bar = f'<span class="bar"><i style="width:{share:.0f}%"></i></span>'
    bits_apart = f"{count(match.distance, 'bit')} differ{'s' * (match.distance == 1)}"
    differ = bits_apart if match.distance else "the same code"
    distance = f'<span class="distance">{differ}</span>'
    return f'<div class="item" title="{escape(match.key)}">{figure}{bar}{distance}</div>'


def _nothing(nearest: int | None) -> str:
    return "No matches." if nearest is None else f"No matches: the nearest is {count(nearest, 'bit')} away."


def _figure(image: str | None, key: str, label: str) -> str:
    image_tag = f'<img src="{image}" alt="{escape(key)}">' if image else '<div class="none">no image</div>'
    return f'{image_tag}<b class="label">{escape(label)}</b><span class="key"><bdi>{escape(key)}</bdi></span>'


def _collection(index: str) -> str:
    """Return the name of the index's folder or, for one inside a model's folder, of that."""
    path = Path(index).absolute()
    return path.parent.name if path.name == INDEX else path.name


def _label(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "no label")
