"""Precision among the first k, up to 2,000; and at 2,000 against the length of the code."""

from __future__ import annotations

from .. import drawing
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering
from ..summaries import Done, curves, mean, rows_of, seeds_in_words, spread, values
from ..tables import Table
from . import table1

TITLE = "Top-k precision"

cells = table1.cells


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """Curves for each length, the last place against the lengths, and its table."""
    place = max((record["ks"][-1] for _, record in done if record["ks"]), default=0)
    last = rows_of([(cell, {**record, "last": record["precision"][-1]}) for cell, record in done if record["ks"]])
    found = {name: {bits: values(group, "last", bits=bits) for bits in config.bits} for name, group in last.items()}
    against = {
        name: {bits: mean(figures) for bits, figures in of_each.items() if figures} for name, of_each in found.items()
    }
    rows = [[name, *(spread(figures) for figures in of_each.values())] for name, of_each in found.items()]
    headings = ["method", *(f"{bits} bits" for bits in config.bits)]
    table = Table("top-k", f"Precision among the first {place:,}", headings, rows, [seeds_in_words(done)])
    by_place = drawing.panels(curves(done, config.bits, "ks", "precision"), "items returned, k", "precision")
    by_bits = drawing.lines(against, "bits", f"precision at {place:,}")
    return Rendering(
        [table],
        {
            "top-k": (f"Precision among the first k, up to {place:,}, by code length.", by_place),
            "top-k-bits": (f"Precision among the first {place:,} against the code length.", by_bits),
        },
    )
