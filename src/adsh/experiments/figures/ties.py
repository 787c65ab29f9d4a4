"""Not in the paper: how much MAP depends on the order of items at equal distance."""

from __future__ import annotations

from .. import drawing
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering, Results
from ..summaries import describe_seeds, format_score, group_by_label, mean, values
from ..tables import Table
from . import table2

TITLE = "MAP over the orders of ties"

cells = table2.cells

_KEYS = ("map_lowest", "map_expected", "map_stable", "map_highest")


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return MAP in the worst order, in expectation, in database order and in the best order."""
    rows, bars = [], {}
    for name, group in group_by_label(results).items():
        for bits in config.bits:
            if values(group, "map_expected", bits=bits):
                lowest, expected, stable, highest = (mean(values(group, key, bits=bits)) for key in _KEYS)
                distinct = mean(values(group, "distinct_codes", bits=bits))
                scores = [format_score(value) for value in (lowest, expected, stable, highest)]
                rows.append([f"{name}, {bits} bits", *scores, f"{distinct:,.0f}"])
                bars[f"{name}, {bits}"] = (lowest, expected, stable, highest)
    headings = ["", "worst order", "expected", "in database order", "best order", "distinct codes"]
    notes = [
        describe_seeds(results, with_std=False),
        "A database sorted by class can put any of these into a paper; the expectation does not move.",
    ]
    caption = "MAP from the worst to the best order of ties; the expectation, and the order of the database."
    return Rendering([Table("ties", TITLE, headings, rows, notes)], {"ties": (caption, drawing.ranges(bars, "MAP"))})
