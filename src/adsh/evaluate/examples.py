"""The case study of the paper: a few queries, each with its ten nearest items."""

from __future__ import annotations

import base64
import io
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..data import Items, as_items
from ..hamming.bits import Codes
from ..labels import LabelSets

NEAREST = 10
THUMBNAIL = 96  # pixels of the longer side: small images are enlarged to it


@dataclass(frozen=True)
class Shown:
    """An item of a case: its label in words, and where it is an image, a thumbnail as a data URI."""

    index: int
    label: str
    image: str | None
    distance: int = 0
    relevant: bool = True


@dataclass(frozen=True)
class Case:
    """A query and its nearest items, nearest first; ties are in random order."""

    query: Shown
    found: list[Shown]

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries; files call an item's image its `picture`."""
        return {"query": _shown_to_json(self.query), "found": [_shown_to_json(shown) for shown in self.found]}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Case:
        """Return the case that `to_json` gave."""
        return cls(_shown_from_json(saved["query"]), [_shown_from_json(shown) for shown in saved["found"]])


def _shown_to_json(shown: Shown) -> dict[str, Any]:
    return {"picture" if name == "image" else name: value for name, value in asdict(shown).items()}


def _shown_from_json(saved: dict[str, Any]) -> Shown:
    return Shown(**{"image" if name == "picture" else name: value for name, value in saved.items()})


def case_study(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: Any,
    database_labels: Any,
    queries: Any,
    database: Any,
    count: int,
    seed: int = 0,
) -> list[Case]:
    """Draw queries at random, and find their nearest items. Tied items, often thousands, are drawn at random too.

    Args:
        query_codes: packed, one a query.
        database_codes: packed, one an item.
        query_labels: in any form that `LabelSets.of` takes.
        database_labels: the same for the database.
        queries: the items themselves.
        database: the items themselves.
        count: how many queries to draw.
        seed: draws them.

    Returns:
        One case for each query drawn.
    """
    rng = np.random.default_rng(seed)
    query_sets, database_sets = LabelSets.of(query_labels), LabelSets.of(database_labels)
    query_items, items = as_items(queries, "queries"), as_items(database, "database")
    cases = []
    for q in rng.choice(len(query_codes), min(count, len(query_codes)), replace=False):
        distance = np.bitwise_count(database_codes ^ query_codes[q]).sum(axis=1, dtype=np.int64)
        query_names = set(query_sets.names_of(int(query_sets.ids[q])))
        found = []
        for i in _nearest(distance, rng):
            names = database_sets.names_of(int(database_sets.ids[i]))
            relevant = bool(query_names & set(names))
            found.append(Shown(int(i), _words(names), item_thumbnail(items, i), int(distance[i]), relevant))
        label = _words(tuple(sorted(query_names, key=str)))
        cases.append(Case(Shown(int(q), label, item_thumbnail(query_items, q)), found))
    return cases


def _nearest(distance: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the first ten by distance; only those no farther than the tenth are sorted."""
    count = min(NEAREST, len(distance))
    near = np.flatnonzero(distance <= np.partition(distance, count - 1)[count - 1])
    return near[np.lexsort((rng.random(len(near)), distance[near]))][:count]


def _words(names: tuple[Any, ...]) -> str:
    return ", ".join(str(name) for name in names) or "no label"


def item_thumbnail(items: Items, index: int | np.integer[Any]) -> str | None:
    """Return the thumbnail of an item; None where it is no image."""
    if len(items.shape) != 3:
        return None
    return thumbnail(items.take(np.array([index]))[0])


def thumbnail(pixels: NDArray[Any], side: int = THUMBNAIL) -> str:
    """Return a thumbnail of an (H, W, channels) image, as a data URI; `side` is its longer one.

    Larger ones than usual are JPEG, a tenth of the bytes, but for small images, whose pixels are to be seen.
    """
    image = Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0])
    scale = side / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    buffer = io.BytesIO()
    kind = "JPEG" if side > THUMBNAIL and scale <= 3 else "PNG"
    resized = image.resize(size, Image.Resampling.NEAREST if scale > 3 else Image.Resampling.LANCZOS)
    resized.save(buffer, kind, quality=88)
    return f"data:image/{kind.lower()};base64," + base64.b64encode(buffer.getvalue()).decode()
