"""Precision at k, up to 2,000; and at 2,000 against the code length."""

from __future__ import annotations

from .. import drawing
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering, Results
from ..summaries import describe_seeds, format_mean, group_by_label, mean, mean_curves, values
from ..tables import Table
from . import table1

TITLE = "Top-k precision"

cells = table1.cells


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return curves of precision at k for each code length; and the last k against the code length, with a table."""
    last_k = max((record["ks"][-1] for _, record in results if record["ks"]), default=0)
    at_last = [(cell, {**record, "last": record["precision"][-1]}) for cell, record in results if record["ks"]]
    precision = {
        name: {bits: values(group, "last", bits=bits) for bits in config.bits}
        for name, group in group_by_label(at_last).items()
    }
    means = {
        name: {bits: mean(numbers) for bits, numbers in by_bits.items() if numbers}
        for name, by_bits in precision.items()
    }
    rows = [[name, *(format_mean(numbers) for numbers in by_bits.values())] for name, by_bits in precision.items()]
    headings = ["method", *(f"{bits} bits" for bits in config.bits)]
    table = Table("top-k", f"Precision among the first {last_k:,}", headings, rows, [describe_seeds(results)])
    curves = mean_curves(results, config.bits, "ks", "precision")
    by_k = drawing.panels(curves, "items returned, k", "precision")
    by_length = drawing.lines(means, "bits", f"precision at {last_k:,}")
    return Rendering(
        [table],
        {
            "top-k": (f"Precision among the first k, up to {last_k:,}, by code length.", by_k),
            "top-k-bits": (f"Precision among the first {last_k:,} against the code length.", by_length),
        },
    )
