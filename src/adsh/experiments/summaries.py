"""Records put together: means over seeds with their spread, and tables of MAP beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .cell import Cell
from .tables import Best, Table

Done = Sequence[tuple[Cell, dict[str, Any]]]
Curve = tuple[list[float], list[float]]


def values(done: Done, key: str, **wanted: Any) -> list[float]:
    """The figure `key` of the records that have these values, a seed each."""
    return [record[key] for _, record in done if all(record[name] == value for name, value in wanted.items())]


def mean(figures: Sequence[float]) -> float:
    """Their mean; NaN of none."""
    return float(np.mean(figures)) if len(figures) else float("nan")


def spread(figures: Sequence[float]) -> str:
    """The mean as .9123, with ± its standard deviation where there are several; a dash for none."""
    if not figures:
        return "–"
    text = share(mean(figures))
    return f"{text} ± {share(float(np.std(figures, ddof=1)))}" if len(figures) > 1 else text


def share(value: float) -> str:
    """.9123; the nought is left out as in tables of MAP."""
    text = f"{value:.4f}"
    return text[1:] if text.startswith("0.") else text


def difference(here: float, there: float) -> str:
    """+.0123 or −.0123."""
    return f"{'+' if here >= there else '−'}{share(abs(here - there))}"


def label(cell: Cell, apart: bool = False) -> str:
    """The method, with what tells its variants apart: the network, or how the hash function is fitted."""
    details = [str(cell.option(name)) for name in ("network", "hash_function") if cell.option(name)]
    return f"{cell.called} ({', '.join(details)})" if details and apart else cell.called


def rows_of(done: Done) -> dict[str, list[tuple[Cell, dict[str, Any]]]]:
    """The cells by method and variant, in the order they came."""
    groups: dict[str, list[tuple[Cell, dict[str, Any]]]] = {}
    for cell, record in done:
        groups.setdefault(label(cell, apart=True), []).append((cell, record))
    return groups


def seeds_in_words(done: Done, *, with_spread: bool = True) -> str:
    """How many runs a figure is the mean of; where some have fewer than others, which."""
    variants: dict[str, set[str]] = {}
    for cell, _ in done:
        variants.setdefault(cell.called, set()).add(label(cell, apart=True))
    of_each: dict[tuple[str, int, int | None], set[int]] = {}
    for cell, _ in done:
        name = label(cell, apart=len(variants[cell.called]) > 1)
        of_each.setdefault((name, cell.bits, cell.points), set()).add(cell.seed)
    seeds = sorted(set().union(*of_each.values()))
    if len(seeds) <= 1:
        return "One run a figure" + (f" (seed {seeds[0]})." if seeds else ".")
    least: dict[str, int] = {}
    for (name, *_), mine in of_each.items():
        least[name] = min(least.get(name, len(seeds)), len(mine))
    fewer = {
        count: [name for name, runs in least.items() if runs == count]
        for count in sorted(set(least.values()), reverse=True) if count < len(seeds)
    }  # fmt: skip
    rest = "".join(f"; {count} for {', '.join(names)}" for count, names in fewer.items())
    beside = ", ± the standard deviation" if with_spread else ""
    return f"Means over {len(seeds)} seeds ({', '.join(map(str, seeds))}){beside}{rest}."


def curves(done: Done, lengths: Iterable[int], x: str, y: str) -> dict[int, dict[str, Curve]]:
    """For each length and method, the lists `x` and `y` of its records, place by place in the mean over the seeds."""
    found: dict[int, dict[str, Curve]] = {}
    for bits in lengths:
        found[bits] = {}
        for name, group in rows_of(done).items():
            records = [record for _, record in group if record["bits"] == bits]
            across, up = ([mean(place) for place in zip(*(r[key] for r in records), strict=True)] for key in (x, y))
            found[bits][name] = (across, up)
    return found


def map_table(name: str, title: str, done: Done, bits: Iterable[int], notes: Sequence[str] = ()) -> Table:
    """MAP of each method at each length, with the paper's figure and the difference beside it; the best are marked."""
    bits = list(bits)
    groups = rows_of(done)
    printed = any(record["paper"] is not None for _, record in done)
    found = {(row, b): values(group, "map_expected", bits=b) for row, group in groups.items() for b in bits}
    best = {b: max((mean(found[row, b]) for row in groups if found[row, b]), default=None) for b in bits}
    rows = []
    for row, group in groups.items():
        cells = [row]
        for b in bits:
            figures = found[row, b]
            text = spread(figures)
            cells.append(Best(text) if figures and mean(figures) == best[b] else text)
            if printed:
                there = [value for value in values(group, "paper", bits=b) if value is not None]
                cells.append(share(there[0]) if there else "–")
                cells.append(difference(mean(figures), there[0]) if there and figures else "–")
        rows.append(cells)
    beside = ["paper", "diff."] if printed else []
    headings = ["method", *(text for b in bits for text in (f"{b} bits", *beside))]
    ours = [first_or_not(found, bits)] if any(cell.method == "adsh" for cell, _ in done) and len(groups) > 1 else []
    return Table(name, title, headings, rows, [seeds_in_words(done), *ours, *notes])


def first_or_not(found: Mapping[tuple[str, int], Sequence[float]], bits: Sequence[int]) -> str:
    """Where ADSH is first, and who is ahead of it elsewhere; `found` has the figures by row and length."""
    behind, unknown = [], []
    for b in bits:
        of_each = {row: mean(figures) for (row, length), figures in found.items() if length == b and figures}
        ours = [row for row in of_each if row.startswith("ADSH")]
        if not ours or len(of_each) == len(ours):
            unknown.append(f"{b}")
            continue
        best = max(of_each, key=lambda row: of_each[row])
        if best not in ours:
            ahead = of_each[best] - max(of_each[row] for row in ours)
            behind.append(f"{best} by {share(ahead)} at {b} bits")
    if len(unknown) == len(bits):
        return "ADSH is not compared yet."
    told = f"not first in every column; ahead of it: {', '.join(behind)}" if behind else "first in every column"
    return f"ADSH is {told}" + (f"; {', '.join(unknown)} bits are not compared yet." if unknown else ".")
