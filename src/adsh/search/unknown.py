"""Items of a folder that look like nothing the model was trained on, grouped by likeness: new classes to be named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset
from ..data.match_input import resize_for_model
from ..errors import FolderError, InputError
from ..evaluate.examples import thumbnail
from ..models.protocol import ItemEncoder
from ..utils.html import html_page
from ..utils.words import count
from .searcher import UNFAMILIAR

_AT_ONCE = 256  # items encoded between two reports of progress
_SIDE, _SHOWN = 288, 24  # pixels of a thumbnail, and how many of a group are on the page

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Group:
    """Items that look like each other."""

    items: list[int]  # numbers in the data set, the most typical first
    familiarity: list[float]


def find_unknown(
    model: ItemEncoder, items: Dataset, on_done: Callable[[int, int], None], below: float = UNFAMILIAR
) -> list[Group]:
    """Return the unfamiliar items, the largest group first.

    Args:
        model: what items are to be familiar to.
        items: where to look.
        on_done: called with the number of items looked at, and of all.
        below: the familiarity below which an item counts as unknown.
    """
    known = model.familiarity_
    if known is None:
        raise InputError("the model does not say what is familiar: train it again, on labels of at least two classes")
    resized = resize_for_model(items, model.input_shape_)
    numbers, features, shares = [], [], []
    for start in range(0, len(items), _AT_ONCE):
        block = np.arange(start, min(start + _AT_ONCE, len(items)))
        found = _features(model, resized.subset(block))
        share = known(found)
        unknown = np.flatnonzero(share < below)
        numbers.append(block[unknown])
        features.append(found[unknown])
        shares.append(share[unknown])
        on_done(int(block[-1]) + 1, len(items))
    number, share = np.concatenate(numbers), np.concatenate(shares)
    groups = known.groups(np.concatenate(features)) if len(number) else []
    return [Group(number[members].tolist(), share[members].tolist()) for members in groups]


def write_groups(path: Path, items: Dataset, groups: list[Group]) -> None:
    """Write a page with a row of thumbnails for each group."""
    style = files("adsh.search").joinpath("page.css").read_text(encoding="utf-8")
    total = sum(len(group.items) for group in groups)
    about = f"{count(total, 'item')} of {len(items):,}, in {count(len(groups), 'group')} of items that look alike."
    body = [f'<p class="soft">{about}</p>', *(_row(items, number, group) for number, group in enumerate(groups, 1))]
    try:
        path.write_text(html_page("Like nothing the model was trained on", body, style), encoding="utf-8")
    except OSError as problem:
        raise FolderError(f"cannot write {path}: {problem.strerror or problem}") from None


def _features(model: ItemEncoder, items: Dataset) -> Floats:
    if len(model.input_shape_) == 1:
        features: Floats = np.asarray(items.__getitems__(range(len(items))), dtype=np.float32)
        return features
    found = model.encode_with_features(items)[1]
    assert found is not None
    return found


def _row(items: Dataset, number: int, group: Group) -> str:
    cells = "".join(_cell(items, item) for item in group.items[:_SHOWN])
    more = len(group.items) - _SHOWN
    rest = f'<p class="soft">and {more:,} more</p>' if more > 0 else ""
    title = f"<h2>Group {number}: {count(len(group.items), 'item')}</h2>"
    return f'{title}<section class="ask"><div class="grid">{cells}{rest}</div></section>'


def _cell(items: Dataset, item: int) -> str:
    pixels, key = items[item], escape(items.keys[item])
    shown = f'<img src="{thumbnail(pixels, _SIDE)}" alt="{key}">' if pixels.ndim > 1 else '<div class="none"></div>'
    return f'<div class="item" title="{key}">{shown}<span class="key"><bdi>{key}</bdi></span></div>'
