"""Beyond the paper: how far MAP moves with the order of items at equal distance."""

from __future__ import annotations

from .. import drawing
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering
from ..summaries import Done, mean, rows_of, seeds_in_words, share, values
from ..tables import Table
from . import table2

TITLE = "MAP over the orders of ties"

cells = table2.cells
_WAYS = ("map_lowest", "map_expected", "map_stable", "map_highest")


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """The worst order, the expectation, the database's order and the best one, for each method and length."""
    rows, drawn = [], {}
    for name, group in rows_of(done).items():
        for bits in config.bits:
            if values(group, "map_expected", bits=bits):
                lowest, expected, stable, highest = (mean(values(group, way, bits=bits)) for way in _WAYS)
                distinct = mean(values(group, "distinct_codes", bits=bits))
                figures = [share(value) for value in (lowest, expected, stable, highest)]
                rows.append([f"{name}, {bits} bits", *figures, f"{distinct:,.0f}"])
                drawn[f"{name}, {bits}"] = (lowest, expected, stable, highest)
    headings = ["", "worst order", "expected", "in database order", "best order", "distinct codes"]
    notes = [
        seeds_in_words(done, with_spread=False),
        "A database sorted by class can put any of these into a paper; the expectation does not move.",
    ]
    caption = "MAP from the worst to the best order of ties; the expectation, and the order of the database."
    return Rendering([Table("ties", TITLE, headings, rows, notes)], {"ties": (caption, drawing.ranges(drawn, "MAP"))})
