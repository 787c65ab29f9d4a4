"""Summaries of results: means and standard deviations over seeds, and how tables write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .cell import Cell, Record
from .rendering import Results

Curve = tuple[list[float], list[float]]

MISSING = "–"
NEW_ITEMS = (
    "New: items that no training saw, coded like a query, each searched among the others; the other MAP is of the "
    "database's codes as learned."
)


def values(results: Results, key: str, **criteria: Any) -> list[float]:
    """Return a value of the records that match, one for each seed; those without it, of earlier versions, are left out.

    Args:
        results: The results.
        key: The key of the value.
        **criteria: The values that a record must have.

    Returns:
        The values, in the order of the results.
    """
    return [
        record[key]
        for _, record in results
        if record.get(key) is not None and all(record[name] == value for name, value in criteria.items())
    ]


def have_new_items(results: Results) -> bool:
    """Return whether any record has MAP of new items; those of earlier versions have not."""
    return any(record.get("map_new") is not None for _, record in results)


def mean(numbers: Sequence[float]) -> float:
    """Return the mean, NaN for no numbers."""
    return float(np.mean(numbers)) if len(numbers) else float("nan")


def format_mean(numbers: Sequence[float]) -> str:
    """Return the mean as .9123, followed by ± the standard deviation if there are several numbers."""
    if not numbers:
        return MISSING
    text = format_score(mean(numbers))
    return f"{text} ± {format_score(float(np.std(numbers, ddof=1)))}" if len(numbers) > 1 else text


def format_score(value: float) -> str:
    """Return a value between 0 and 1 as .9123, without the leading zero, as tables of MAP have it."""
    text = f"{value:.4f}"
    return text[1:] if text.startswith("0.") else text


def format_difference(value: float, reference: float) -> str:
    """Return the difference as +.0123 or −.0123."""
    return f"{'+' if value >= reference else '−'}{format_score(abs(value - reference))}"


def label(cell: Cell, *, detailed: bool = False) -> str:
    """Return the method; if detailed, with its network or the kind of its hash function in brackets."""
    details = [str(cell.option(name)) for name in ("network", "hash_function") if cell.option(name)]
    return f"{cell.display_name} ({', '.join(details)})" if details and detailed else cell.display_name


def group_by_label(results: Results) -> dict[str, list[tuple[Cell, Record]]]:
    """Group results by method and variant, in the order of their first cells."""
    groups: dict[str, list[tuple[Cell, Record]]] = {}
    for cell, record in results:
        groups.setdefault(label(cell, detailed=True), []).append((cell, record))
    return groups


def describe_seeds(results: Results, *, with_std: bool = True) -> str:
    """Say over how many seeds the values of a table are averaged, and which methods have fewer."""
    variants: dict[str, set[str]] = {}
    for cell, _ in results:
        variants.setdefault(cell.display_name, set()).add(label(cell, detailed=True))
    seeds_of: dict[tuple[str, int, int | None], set[int]] = {}
    for cell, _ in results:
        name = label(cell, detailed=len(variants[cell.display_name]) > 1)
        seeds_of.setdefault((name, cell.bits, cell.points), set()).add(cell.seed)
    seeds = sorted(set().union(*seeds_of.values()))
    if len(seeds) <= 1:
        return "One run a figure" + (f" (seed {seeds[0]})." if seeds else ".")
    fewest: dict[str, int] = {}
    for (name, *_), present in seeds_of.items():
        fewest[name] = min(fewest.get(name, len(seeds)), len(present))
    fewer = {
        count: [name for name, runs in fewest.items() if runs == count]
        for count in sorted(set(fewest.values()), reverse=True) if count < len(seeds)
    }  # fmt: skip
    exceptions = "".join(f"; {count} for {', '.join(names)}" for count, names in fewer.items())
    spread = ", ± the standard deviation" if with_std else ""
    return f"Means over {len(seeds)} seeds ({', '.join(map(str, seeds))}){spread}{exceptions}."


def mean_curves(results: Results, lengths: Iterable[int], x: str, y: str) -> dict[int, dict[str, Curve]]:
    """Average the curves of each method over the seeds.

    Args:
        results: The results.
        lengths: The code lengths.
        x: The key of the lists of x values.
        y: The key of the lists of y values.

    Returns:
        The mean curve of each method, by code length.
    """
    curves: dict[int, dict[str, Curve]] = {}
    for bits in lengths:
        curves[bits] = {}
        for name, group in group_by_label(results).items():
            records = [record for _, record in group if record["bits"] == bits]
            xs, ys = ([mean(point) for point in zip(*(r[key] for r in records), strict=True)] for key in (x, y))
            curves[bits][name] = (xs, ys)
    return curves
