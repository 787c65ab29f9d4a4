"""Sensitivity of ADSH to gamma and to the number of sampled points, at two code lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import drawing
from ..cell import Cell
from ..experiment_config import ExperimentConfig
from ..experiment_data import open_data
from ..rendering import Rendering, Results
from ..summaries import describe_seeds, format_mean, have_new_items, mean
from ..tables import Table

TITLE = "Sensitivity to the hyper-parameters"
GAMMAS = tuple(10.0**power for power in range(-4, 6))
SAMPLES = (500, 1000, 1500, 2000, 2500, 3000)

_PAPER_LENGTHS = (24, 48)


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return a cell for each gamma, then for each number of sampled points m that the database has."""
    database_size = len(open_data(config).split(config.seeds[0]).database)
    changes: list[dict[str, Any]] = [{"gamma": gamma} for gamma in GAMMAS]
    changes += [{"samples": m} for m in SAMPLES if m <= database_size]
    return [
        config.cell("adsh", bits, seed, **change)
        for seed in config.seeds for change in changes for bits in _lengths(config)
    ]  # fmt: skip


def _lengths(config: ExperimentConfig) -> list[int]:
    """Return the code lengths of the paper, or the last one if none of them is configured."""
    return [bits for bits in config.bits if bits in _PAPER_LENGTHS] or [config.bits[-1]]


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return a table and a panel for each of the two hyper-parameters."""
    tables, panels = [], []
    for option, tried, name, log in (("gamma", GAMMAS, "gamma", "x"), ("samples", SAMPLES, "sampled points m", "")):
        scores = _scores(results, option, tried, _lengths(config), "map_expected")
        rows = [[f"{bits} bits", *(format_mean(by_value[v]) for v in tried)] for bits, by_value in scores.items()]
        if have_new_items(results):
            new = _scores(results, option, tried, _lengths(config), "map_new")
            rows += [[f"{bits} bits, new items", *(format_mean(of[v]) for v in tried)] for bits, of in new.items()]
        headings = ["MAP", *(f"{value:g}" for value in tried)]
        notes = [describe_seeds(results)]
        tables.append(Table(f"hyper-{option}", f"MAP of ADSH against {name}", headings, rows, notes))
        series = {
            f"{bits} bits": {value: mean(numbers) for value, numbers in by_value.items() if numbers}
            for bits, by_value in scores.items()
        }
        panels.append((name, series, name, "MAP", log))
    caption = "MAP of ADSH against gamma, and against the number of sampled points."
    return Rendering(tables, {"hyper": (caption, drawing.side_by_side(panels))})


def _scores(
    results: Results, option: str, tried: Sequence[float], lengths: Sequence[int], key: str
) -> dict[int, dict[float, list[float]]]:
    """Return a value of the records by code length and value of an option.

    Args:
        results: The results.
        option: The option.
        tried: The values that were tried.
        lengths: The code lengths.
        key: The key of the value; records of earlier versions may lack it.
    """
    scores: dict[int, dict[float, list[float]]] = {bits: {value: [] for value in tried} for bits in lengths}
    for cell, record in results:
        if cell.option(option) is not None and record.get(key) is not None:
            scores[cell.bits][cell.option(option)].append(record[key])
    return scores
