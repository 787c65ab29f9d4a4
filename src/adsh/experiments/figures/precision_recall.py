"""Precision and recall of a look-up within each Hamming radius."""

from __future__ import annotations

from .. import drawing
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering, Results
from ..summaries import MISSING, describe_seeds, format_score, group_by_label, mean_curves
from ..tables import Table
from . import table1

TITLE = "Precision-recall by Hamming radius"

cells = table1.cells

_RADIUS = 2  # affordable in a look-up of a hash table


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return a precision-recall curve for each method and code length, and a table for a look-up within two bits."""
    curves = mean_curves(results, config.bits, "radius_recall", "radius_precision")
    rows = []
    for name in group_by_label(results):
        row = [name]
        for bits in config.bits:
            recall, precision = curves[bits][name]
            known = len(recall) > _RADIUS
            row += [format_score(curve[_RADIUS]) if known else MISSING for curve in (precision, recall)]
        rows.append(row)
    headings = ["method", *(text for bits in config.bits for text in (f"{bits} bits, precision", "recall"))]
    title = f"Look-up within {_RADIUS} bits; a query that finds nothing counts 0"
    table = Table("pr", title, headings, rows, [describe_seeds(results, with_std=False)])
    caption = "Precision against recall by code length; each point is a Hamming radius."
    return Rendering([table], {"pr": (caption, drawing.panels(curves, "recall", "precision", markers=True))})
