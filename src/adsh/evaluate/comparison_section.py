"""The part of a report that puts a model next to what its features give without codes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .columns import COLUMNS, HASHED, LEARNED, NETWORK, NEW
from .evaluation import Evaluation

TITLE = "Next to baselines"
WORDS = (
    "MAP with its 95 % interval, on the same features. The baselines rank by real numbers, without codes: a linear "
    "classifier in which each class counts the same, and the cosine of the features."
)

_ORDER = (LEARNED, NETWORK, HASHED, NEW)
_MISSING = "–"

Row = tuple[str, ...]


def comparison(evaluations: Sequence[Evaluation]) -> tuple[Row, list[Row]]:
    """Return headings and rows: each model, then the baselines on its features; no rows where there are none."""
    if not any(evaluation.baselines for evaluation in evaluations):
        return (), []
    columns = [name for name in _ORDER if any(name in evaluation.columns for evaluation in evaluations)]
    rows: list[Row] = []
    for evaluation in evaluations:
        scores = {name: (one.map_expected, one.map_interval) for name, one in evaluation.columns.items()}
        rows.append((evaluation.name, *(_cell(scores, name) for name in columns), _what_it_saw(evaluation)))
    for evaluation in evaluations:
        for baseline in evaluation.baselines:
            scores = {name: (one.map_expected, one.map_interval) for name, one in baseline.columns.items()}
            size = f"; {baseline.queries:,} queries, {baseline.database:,} items"
            sampled = size * ((baseline.queries, baseline.database) != (evaluation.queries, evaluation.database))
            row = (baseline.name, *(_cell(scores, name) for name in columns), baseline.saw + sampled)
            if row not in rows:
                rows.append(row)
    return ("", *(COLUMNS[name] for name in columns), "learned from"), rows


def baseline_notes(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return a sentence for each evaluation that a baseline is ahead of, and for each that has none and why."""
    notes = []
    for evaluation in evaluations:
        of = f" for {evaluation.name}" * (len(evaluations) > 1)
        if ahead := baselines_ahead(evaluation):
            notes.append(f"A baseline is ahead of the model{of}: {'; '.join(ahead)}.")
        if evaluation.baselines_missing and not evaluation.baselines:
            notes.append(f"No baselines{of}: {evaluation.baselines_missing}.")
    return notes


def baselines_ahead(evaluation: Evaluation) -> list[str]:
    """Return, for each column in which baselines have a higher MAP than the model, the best of them with both MAPs."""
    ahead = []
    for name in _ORDER:
        rivals = [baseline for baseline in evaluation.baselines if name in baseline.columns]
        if name not in evaluation.columns or not rivals:
            continue
        best = max(rivals, key=lambda baseline: baseline.columns[name].map_expected)
        theirs, ours = best.columns[name].map_expected, evaluation.columns[name].map_expected
        if theirs > ours:
            ahead.append(f"{best.name} has {theirs:.4f} for {COLUMNS[name]}, the model {ours:.4f}")
    return ahead


def comparison_section(evaluations: Sequence[Evaluation]) -> str:
    """Return the section as HTML; empty where nothing was compared."""
    headings, rows = comparison(evaluations)
    notes = "".join(f'<p class="soft">{escape(note)}</p>' for note in baseline_notes(evaluations))
    if not rows:
        return notes
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(_row(row) for row in rows)
    return (
        f'<h2>{TITLE}</h2><p class="soft">{WORDS}</p><div class="scroll"><table class="compared"><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>{notes}"
    )


def _row(row: Row) -> str:
    """Return a row as HTML, each interval below its MAP."""
    cells = []
    for cell in row[1:-1]:
        mean, _, interval = cell.partition(" (")
        below = f"<br><small>{interval.removesuffix(')')}</small>" if interval else ""
        cells.append(f"<td><b>{mean}</b>{below}</td>")
    return f"<tr><td>{escape(row[0])}</td>{''.join(cells)}<td class=note>{escape(row[-1])}</td></tr>"


def _cell(scores: dict[str, tuple[float, list[float] | None]], name: str) -> str:
    if name not in scores:
        return _MISSING
    mean, interval = scores[name]
    return f"{mean:.4f}" + ("" if interval is None else " ({:.3f} to {:.3f})".format(*interval))


def _what_it_saw(evaluation: Evaluation) -> str:
    return f"{evaluation.database:,} database items"
