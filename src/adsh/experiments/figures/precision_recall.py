"""Precision and recall of a look-up within each Hamming radius."""

from __future__ import annotations

from .. import drawing
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering
from ..summaries import Done, curves, rows_of, seeds_in_words, share
from ..tables import Table
from . import table1

TITLE = "Precision-recall by Hamming radius"

cells = table1.cells
_RADIUS = 2  # what a look-up in a hash table can afford


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """A curve of each method for each length, a point a radius; and what a look-up within two bits gives."""
    found = curves(done, config.bits, "radius_recall", "radius_precision")
    rows = []
    for name in rows_of(done):
        cells = [name]
        for bits in config.bits:
            recall, precision = found[bits][name]
            there = len(recall) > _RADIUS
            cells += [share(precision[_RADIUS]) if there else "–", share(recall[_RADIUS]) if there else "–"]
        rows.append(cells)
    headings = ["method", *(text for bits in config.bits for text in (f"{bits} bits, precision", "recall"))]
    title = f"Look-up within {_RADIUS} bits; a query that finds nothing counts 0"
    table = Table("pr", title, headings, rows, [seeds_in_words(done, with_spread=False)])
    caption = "Precision against recall by code length; each point is a Hamming radius."
    return Rendering([table], {"pr": (caption, drawing.panels(found, "recall", "precision", marked=True))})
