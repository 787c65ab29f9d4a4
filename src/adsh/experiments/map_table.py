"""Tables of MAP by method and code length, next to the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .comparison import describe_rank, rank_of, scores_of
from .rendering import Results
from .summaries import (
    MISSING,
    NEW_ITEMS,
    describe_seeds,
    format_difference,
    format_mean,
    format_score,
    group_by_label,
    have_new_items,
    mean,
    values,
)
from .tables import Best, Table


def map_table(name: str, title: str, results: Results, lengths: Iterable[int], notes: Sequence[str] = ()) -> Table:
    """Return a table of MAP by method and code length, the best in bold, with the paper's values if there are any.

    Where ADSH is not first, its cell says which method it is level with or behind. Records that say how their options
    were tuned get a column of it.

    Args:
        name: The name of the table.
        title: Its title.
        results: The results.
        lengths: The code lengths.
        notes: Sentences below the table, after those on seeds and on the rank of ADSH.

    Returns:
        The table.
    """
    lengths = list(lengths)
    groups = group_by_label(results)
    has_new, has_tuned = have_new_items(results), any(record.get("tuned") for _, record in results)
    has_paper = any(record["paper"] is not None for _, record in results)
    has_adsh = any(cell.method == "adsh" for cell, _ in results) and len(groups) > 1
    scores = scores_of(results)
    places = {bits: rank_of(scores, bits) if has_adsh else None for bits in lengths}
    numbers = {
        (row, bits): values(group, "map_expected", bits=bits) for row, group in groups.items() for bits in lengths
    }
    best = {b: max((mean(numbers[row, b]) for row in groups if numbers[row, b]), default=None) for b in lengths}
    rows = []
    for row, group in groups.items():
        cells = [row]
        for bits in lengths:
            here, place = numbers[row, bits], places[bits]
            text = format_mean(here) + (place.remark if place and place.row == row else "")
            cells.append(Best(text) if here and mean(here) == best[bits] else text)
            cells += [format_mean(values(group, "map_new", bits=bits))] * has_new
            if has_paper:
                cells += _compare(here, next(iter(values(group, "paper", bits=bits)), None))
        cells += ["; ".join(dict.fromkeys(record.get("tuned", MISSING) for _, record in group))] * has_tuned
        rows.append(cells)
    more = ["new"] * has_new + ["paper", "diff."] * has_paper
    headings = ["method", *(text for bits in lengths for text in (f"{bits} bits", *more)), *["how tuned"] * has_tuned]
    rank = [describe_rank(scores, lengths)] if has_adsh else []
    return Table(name, title, headings, rows, [describe_seeds(results), *rank, *notes, *[NEW_ITEMS] * has_new])


def _compare(numbers: Sequence[float], printed: float | None) -> list[str]:
    """Return the paper's value, and the difference to it."""
    if printed is None:
        return [MISSING, MISSING]
    return [format_score(printed), format_difference(mean(numbers), printed) if numbers else MISSING]
