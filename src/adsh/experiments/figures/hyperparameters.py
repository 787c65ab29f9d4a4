"""What gamma and the size of the sample are worth: MAP of ADSH against each, at two code lengths."""

from __future__ import annotations

from typing import Any

from .. import drawing
from ..cell import Cell
from ..experiment_config import ExperimentConfig, open_data
from ..rendering import Rendering
from ..summaries import Done, mean, seeds_in_words, spread
from ..tables import Table

TITLE = "Sensitivity to the hyper-parameters"
GAMMAS = tuple(10.0**power for power in range(-4, 6))
SAMPLES = (500, 1000, 1500, 2000, 2500, 3000)


def cells(config: ExperimentConfig) -> list[Cell]:
    """Gamma with all else as usual, then the sample's size m likewise, as far as the database goes."""
    whole = len(open_data(config).split(config.seeds[0]).database)
    changes: list[dict[str, Any]] = [{"gamma": gamma} for gamma in GAMMAS]
    changes += [{"samples": m} for m in SAMPLES if m <= whole]
    return [
        config.cell("adsh", bits, seed, **change)
        for seed in config.seeds for change in changes for bits in _lengths(config)
    ]  # fmt: skip


def _lengths(config: ExperimentConfig) -> list[int]:
    """24 and 48 bits, as the paper has them, or what there is."""
    return [bits for bits in config.bits if bits in (24, 48)] or [config.bits[-1]]


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """A table and a panel for each of the two."""
    tables, parts = [], []
    for option, tried, called, log in (("gamma", GAMMAS, "gamma", "x"), ("samples", SAMPLES, "sampled points m", "")):
        found: dict[int, dict[float, list[float]]] = {bits: {value: [] for value in tried} for bits in _lengths(config)}
        for cell, record in done:
            if cell.option(option) is not None:
                found[cell.bits][cell.option(option)].append(record["map_expected"])
        rows = [[f"{bits} bits", *(spread(of_each[value]) for value in tried)] for bits, of_each in found.items()]
        headings = ["MAP", *(f"{value:g}" for value in tried)]
        notes = [seeds_in_words(done)]
        tables.append(Table(f"hyper-{option}", f"MAP of ADSH against {called}", headings, rows, notes))
        series = {
            f"{bits} bits": {value: mean(figures) for value, figures in of_each.items() if figures}
            for bits, of_each in found.items()
        }
        parts.append((called, series, called, "MAP", log))
    caption = "MAP of ADSH against gamma, and against the number of sampled points."
    return Rendering(tables, {"hyper": (caption, drawing.side_by_side(parts))})
