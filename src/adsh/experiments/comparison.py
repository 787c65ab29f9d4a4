"""Is ADSH ahead? Leads against the spread of seeds, and differences over the seeds that two methods share.

Seeds draw the split as well as the training, so figures of one seed go together: the difference of each seed, and its
mean with a 95 % interval (Student's t), leaves out how hard a split is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .rendering import Results
from .summaries import MISSING, format_score, group_by_label, mean
from .tables import Table

Scores = Mapping[tuple[str, int], Mapping[int, float]]  # (row of the table, code length) -> seed -> MAP

LEVEL = "Level: the lead is smaller than the standard deviation over seeds of one of the two."

_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)  # of 97.5 %, by degrees of freedom from 1


class Rank(NamedTuple):
    """Where ADSH is among the others at one code length: `first`, `level` or `behind`."""

    place: str
    row: str  # of ADSH
    other: str  # the best of the others
    lead: float  # of ADSH, below 0 where the other is ahead

    @property
    def remark(self) -> str:
        """What the cell of ADSH says of it; nothing where it is first."""
        return "" if self.place == "first" else f", {self.place} {'with ' * (self.place == 'level')}{self.other}"


def scores_of(results: Results) -> dict[tuple[str, int], dict[int, float]]:
    """Return MAP by row of a table, code length and seed."""
    scores: dict[tuple[str, int], dict[int, float]] = {}
    for row, group in group_by_label(results).items():
        for cell, record in group:
            scores.setdefault((row, cell.bits), {})[cell.seed] = record["map_expected"]
    return scores


def rank_of(scores: Scores, bits: int) -> Rank | None:
    """Return where ADSH is at a code length; None where it is not compared.

    Args:
        scores: MAP by row, code length and seed.
        bits: The code length.

    Returns:
        Its place, next to the best of the other rows.
    """
    here = {row: list(by_seed.values()) for (row, length), by_seed in scores.items() if length == bits}
    ours = max((row for row in here if _is_adsh(row)), key=lambda row: mean(here[row]), default=None)
    others = {row: numbers for row, numbers in here.items() if not _is_adsh(row)}
    if ours is None or not others:
        return None
    best = max(others, key=lambda row: mean(others[row]))
    lead = mean(here[ours]) - mean(others[best])
    spread = max(
        (float(np.std(numbers, ddof=1)) for numbers in (here[ours], here[best]) if len(numbers) > 1), default=0
    )
    place = "level" if abs(lead) < spread or not lead else "first" if lead > 0 else "behind"
    return Rank(place, ours, best, lead)


def describe_rank(scores: Scores, lengths: Sequence[int]) -> str:
    """Say at which code lengths ADSH is first, level with another method, or behind one.

    Args:
        scores: MAP by row, code length and seed.
        lengths: The code lengths.

    Returns:
        One sentence, and another on what level means.
    """
    found = {bits: rank_of(scores, bits) for bits in lengths}
    first = [bits for bits, there in found.items() if there and there.place == "first"]
    missing = [bits for bits, there in found.items() if there is None]
    if len(missing) == len(lengths):
        return "ADSH is not compared yet."
    parts = []
    if first:
        parts.append(
            "first in every column" if len(first) + len(missing) == len(lengths) else f"first at {_list(first)}"
        )
    for place, preposition in (("level", "level with"), ("behind", "behind")):
        parts += [
            f"{preposition} {there.other} at {bits} bits ({_signed(there.lead)})"
            for bits, there in found.items()
            if there and there.place == place
        ]
    if missing:
        parts.append(f"not compared yet at {_list(missing)}")
    level = any(there and there.place == "level" for there in found.values())
    return f"ADSH is {'; '.join(parts)}." + f" {LEVEL}" * level


def difference_table(name: str, results: Results, lengths: Sequence[int]) -> Table | None:
    """Return how far ADSH is ahead of each other row, by the seeds that both have.

    Args:
        name: The name of the table.
        results: The results.
        lengths: The code lengths.

    Returns:
        The table; None where no two runs share a seed with ADSH's.
    """
    scores = scores_of(results)
    ours = next((row for row, _ in scores if _is_adsh(row)), None)
    others = [row for row in dict.fromkeys(row for row, _ in scores) if not _is_adsh(row)]
    if ours is None:
        return None
    rows = []
    for other in others:
        pairs = [paired(scores.get((ours, bits), {}), scores.get((other, bits), {})) for bits in lengths]
        rows.append([other, *(format_interval(numbers) for numbers in pairs)])
    if not any(cell != MISSING for row in rows for cell in row[1:]):
        return None
    note = (
        "Mean of the differences seed by seed, with its 95 % interval (Student's t); a number alone is of one seed. "
        "With an interval that holds 0, the two may be equal."
    )
    title = "MAP of ADSH less that of each method, over the seeds both have"
    return Table(name, title, ["method", *(f"{bits} bits" for bits in lengths)], rows, [note])


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Return the differences of the seeds that both have."""
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of at least two differences."""
    n = len(differences)
    half = _T[min(n - 1, len(_T)) - 1] * float(np.std(differences, ddof=1)) / n**0.5
    return mean(differences) - half, mean(differences) + half


def format_interval(differences: Sequence[float]) -> str:
    """Return +.0123 [−.0012, +.0258], without an interval for one difference."""
    if not differences:
        return MISSING
    text = _signed(mean(differences))
    return text if len(differences) == 1 else f"{text} [{', '.join(map(_signed, interval(differences)))}]"


def _is_adsh(row: str) -> bool:
    return row.partition(" ")[0] == "ADSH"


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '−'}{format_score(abs(value))}"


def _list(lengths: Sequence[int]) -> str:
    """Return 12, 24 and 48 bits."""
    *most, last = map(str, lengths)
    return f"{', '.join(most)} and {last} bits" if most else f"{last} bits"
