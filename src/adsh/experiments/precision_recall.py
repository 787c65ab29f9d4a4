"""Precision and recall of a look-up within each Hamming radius."""

from __future__ import annotations

from . import drawing, table1
from .setting import Setting
from .shown import Shown
from .summaries import Done, curves, rows_of, seeds_in_words, share
from .tables import Table

TITLE = "Precision-recall by Hamming radius"

cells = table1.cells
_RADIUS = 2  # what a look-up in a hash table can afford


def show(setting: Setting, done: Done) -> Shown:
    """A curve of each method for each length, a point a radius; and what a look-up within two bits gives."""
    found = curves(done, setting.bits, "radius_recall", "radius_precision")
    rows = []
    for name in rows_of(done):
        cells = [name]
        for bits in setting.bits:
            recall, precision = found[bits][name]
            there = len(recall) > _RADIUS
            cells += [share(precision[_RADIUS]) if there else "–", share(recall[_RADIUS]) if there else "–"]
        rows.append(cells)
    headings = ["method", *(text for bits in setting.bits for text in (f"{bits} bits, precision", "recall"))]
    title = f"Look-up within {_RADIUS} bits; a query that finds nothing counts 0"
    table = Table("pr", title, headings, rows, [seeds_in_words(done, with_spread=False)])
    caption = "Precision against recall by code length; each point is a Hamming radius."
    return Shown([table], {"pr": (caption, drawing.panels(found, "recall", "precision", marked=True))})
