"""The case study of the paper: some queries, each with its ten nearest."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..data import Items, as_items
from ..hamming.bits import Codes
from ..labels import LabelSets

NEAREST = 10
THUMBNAIL = 96  # pixels: small pictures are enlarged to it, large ones reduced


@dataclass(frozen=True)
class Shown:
    """An item in a case: its label in words, and its picture as a data URI where it is one."""

    index: int
    label: str
    picture: str | None
    distance: int = 0
    relevant: bool = True


@dataclass(frozen=True)
class Case:
    """A query and what it found, nearest first; ties are in random order."""

    query: Shown
    found: list[Shown]

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Case:
        """What dataclasses.asdict gave."""
        return cls(Shown(**saved["query"]), [Shown(**shown) for shown in saved["found"]])


def study(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: Any,
    database_labels: Any,
    queries: Any,
    database: Any,
    count: int,
    seed: int = 0,
) -> list[Case]:
    """`count` queries drawn at random, with their nearest. Tied items, often thousands, are drawn at random too."""
    rng = np.random.default_rng(seed)
    asking, answering = LabelSets.of(query_labels), LabelSets.of(database_labels)
    query_items, items = as_items(queries, "queries"), as_items(database, "database")
    cases = []
    for q in rng.choice(len(query_codes), min(count, len(query_codes)), replace=False):
        distance = np.bitwise_count(database_codes ^ query_codes[q]).sum(axis=1, dtype=np.int64)
        wanted = set(asking.names_of(int(asking.ids[q])))
        found = []
        for i in _nearest(distance, rng):
            names = answering.names_of(int(answering.ids[i]))
            relevant = bool(wanted & set(names))
            found.append(Shown(int(i), _words(names), picture(items, i), int(distance[i]), relevant))
        cases.append(Case(Shown(int(q), _words(tuple(sorted(wanted, key=str))), picture(query_items, q)), found))
    return cases


def _nearest(distance: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The first ten by distance; only those no farther than the tenth are ordered."""
    count = min(NEAREST, len(distance))
    near = np.flatnonzero(distance <= np.partition(distance, count - 1)[count - 1])
    return near[np.lexsort((rng.random(len(near)), distance[near]))][:count]


def _words(names: tuple[Any, ...]) -> str:
    return ", ".join(str(name) for name in names) or "no label"


def picture(items: Items, index: int | np.integer[Any]) -> str | None:
    """An item as a small picture, where it is an image."""
    if len(items.shape) != 3:
        return None
    return thumbnail(items.take(np.array([index]))[0])


def thumbnail(pixels: NDArray[Any]) -> str:
    """A small picture of an (H, W, channels) image, as an address that holds it whole."""
    image = Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0])
    scale = THUMBNAIL / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    buffer = io.BytesIO()
    image.resize(size, Image.Resampling.NEAREST if scale > 3 else Image.Resampling.LANCZOS).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
