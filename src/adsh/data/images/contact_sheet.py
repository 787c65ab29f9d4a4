"""A contact sheet of a dataset: a row for each class with its name, its count, and some of its images."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ...errors import InputError
from ...utils.files import check_parent, replacing_file
from ..dataset import Dataset
from .decode import Pixels
from .resized import center_crop, resize_shorter_side

_TILE, _GAP, _MARGIN = 72, 6, 24
_HEAD, _NAME_WIDTH = 64, 260
_MOST_ROWS, _UNLABELLED_ROWS = 40, 8
_BACKGROUND, _INK, _FAINT = "#ffffff", "#1c2330", "#76808f"


@dataclass(frozen=True)
class _Row:
    name: str
    count: int
    indices: NDArray[np.int64]  # of the images shown


def contact_sheet(dataset: Dataset, path: str | Path, columns: int = 12, seed: int = 0) -> Path:
    """Write a contact sheet. At most 40 classes are shown, those with most items; only the images shown are read.

    Args:
        dataset: the images.
        path: the file to write; its suffix, .png, .jpg or .webp, gives the format.
        columns: images a row.
        seed: the images shown are drawn from it.

    Returns:
        The path of the file.
    """
    path = Path(path)
    kind = check_sheet(path)
    if columns < 1:
        raise InputError(f"columns={columns}: give 1 or more")
    rows = _rows(dataset, columns, np.random.default_rng(seed))
    buffer = io.BytesIO()
    _draw(dataset, rows, columns).save(buffer, kind, quality=92)
    with replacing_file(path) as file:
        file.write(buffer.getvalue())
    return path


def check_sheet(path: Path) -> str:
    """Return the format that this name stands for; raise where it could not be written."""
    kind = Image.registered_extensions().get(path.suffix.lower())
    if kind not in ("PNG", "JPEG", "WEBP"):
        raise InputError(f"{path} is no name of an image: call it .png, .jpg or .webp")
    check_parent(path)
    return kind


def _rows(dataset: Dataset, columns: int, rng: np.random.Generator) -> list[_Row]:
    labels = dataset.labels
    if labels is None:
        sample = rng.choice(len(dataset), min(len(dataset), columns * _UNLABELLED_ROWS), replace=False)
        return [_Row("", 0, sample[at : at + columns]) for at in range(0, len(sample), columns)]
    starts, holders = labels.holders()
    counts = np.array([labels.sizes[holders[starts[t] : starts[t + 1]]].sum() for t in range(len(labels.names))])
    shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_ROWS])
    rows = []
    for tag in shown[counts[shown] > 0].tolist():
        has_tag = np.zeros(labels.set_count, dtype=bool)
        has_tag[holders[starts[tag] : starts[tag + 1]]] = True
        members = np.flatnonzero(has_tag[labels.ids])
        sample = rng.choice(members, min(columns, len(members)), replace=False)
        rows.append(_Row(dataset.classes[tag], int(counts[tag]), np.sort(sample)))
    return rows


def _draw(dataset: Dataset, rows: list[_Row], columns: int) -> Image.Image:
    title, name, small = (ImageFont.load_default(size) for size in (24, 17, 13))
    names = 0 if dataset.labels is None else min(_NAME_WIDTH, max(_widest(rows, name), 60)) + 20
    step = _TILE + _GAP
    width = max(2 * _MARGIN + names + columns * step - _GAP, 420)
    sheet = Image.new("RGB", (width, 2 * _MARGIN + _HEAD + len(rows) * step - _GAP), _BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    draw.text((_MARGIN, _MARGIN - 4), dataset.name, _INK, title)
    draw.text((_MARGIN, _MARGIN + 28), _subtitle(dataset, len(rows)), _FAINT, small)
    for at, row in enumerate(rows):
        top = _MARGIN + _HEAD + at * step
        if names:
            draw.text((_MARGIN, top + _TILE // 2), _short(row.name, name, names - 20), _INK, name, anchor="ls")
            draw.text((_MARGIN, top + _TILE // 2 + 18), f"{row.count:,}", _FAINT, small, anchor="ls")
        for column, image in enumerate(dataset.__getitems__(row.indices.tolist())):
            sheet.paste(Image.fromarray(_tile(image, dataset.name)), (_MARGIN + names + column * step, top))
    return sheet


def _subtitle(dataset: Dataset, rows: int) -> str:
    text = f"{len(dataset):,} items"
    if dataset.labels is None:
        return text + ", not labelled"
    classes = len(dataset.classes)
    return f"{text}, {classes:,} classes" + (f", {rows} of them shown" if rows < classes else "")


def _tile(image: NDArray[Any], name: str) -> Pixels:
    if image.ndim != 3 or image.dtype != np.uint8:
        raise InputError(f"{name} has items of shape {image.shape}: only images can be shown on a sheet")
    color: Pixels = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
    if max(color.shape[:2]) * 4 <= _TILE:  # very few pixels: enlarged without blurring
        larger = _TILE // min(color.shape[:2]) + 1
        color = color.repeat(larger, axis=0).repeat(larger, axis=1)
    return center_crop(resize_shorter_side(color, _TILE), _TILE)


def _widest(rows: list[_Row], font: Any) -> int:
    return int(max((font.getlength(row.name) for row in rows), default=0))


def _short(text: str, font: Any, room: int) -> str:
    """Return the text, cut with … where it does not fit.

    Args:
        text: the text.
        font: the font that it is drawn in.
        room: its width at most, in pixels.

    Returns:
        The text, or its beginning with ….
    """
    if font.getlength(text) <= room:
        return text
    while text and font.getlength(text + "…") > room:
        text = text[:-1]
    return text + "…"
