"""The part of a report about classes: found worst, taken for one another, and with codes near each other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .columns import COLUMNS, NEW
from .confusions import Confusion
from .evaluation import Evaluation

_SHOWN = 10  # rows of each table


def class_section(evaluation: Evaluation) -> str:
    """Return the section; empty where classes were not evaluated."""
    name, worst, confused, nearest = _tables(evaluation)
    if not worst:
        return ""
    column = evaluation.columns[name]
    classes = len(column.by_class or ())
    some = f"the {_SHOWN} worst of {classes:,} classes" if classes > _SHOWN else "all classes, the worst first"
    confusions = _table(_CONFUSED, confused) if confused else ""
    parts = [
        f"<h3>Found worst</h3><p class=soft>MAP by class, {COLUMNS[name]}: {some}.</p>"
        + _table(("class", "queries", "MAP"), worst),
        f"<h3>Confusions</h3><p class=soft>{escape(_confusions_in_words(evaluation))}</p>{confusions}",
    ]
    if nearest:
        parts.append(
            "<h3>Nearest codes</h3><p class=soft>The classes whose codes are nearest, by the number of bits in which "
            "they differ. Classes with the same code cannot be told apart in a labelled database.</p>"
            + _table(("class", "and", "bits apart"), nearest)
        )
    return f'<h2>Classes</h2><div class="tables">{"".join(f"<section>{part}</section>" for part in parts)}</div>'


def class_markdown(evaluation: Evaluation) -> list[str]:
    """Return the lines of the section in Markdown; none where classes were not evaluated."""
    name, worst, confused, nearest = _tables(evaluation)
    if not worst:
        return []
    lines = ["## Classes", "", f"MAP by class, {COLUMNS[name]}, the worst first.", ""]
    lines += [*markdown_table(("class", "queries", "MAP"), worst), "", _confusions_in_words(evaluation), ""]
    lines += [*markdown_table(_CONFUSED, confused), ""] if confused else []
    if nearest:
        lines += ["The classes whose codes are nearest.", ""]
        lines += [*markdown_table(("class", "and", "bits apart"), nearest), ""]
    return lines


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def confusions(evaluation: Evaluation) -> list[Confusion]:
    """Return the largest confusions, of new items where the evaluation has them."""
    return (evaluation.columns[_column(evaluation)].confusions or [])[:_SHOWN]


def _column(evaluation: Evaluation) -> str:
    """Return the name of the column that the section is of."""
    return NEW if NEW in evaluation.columns else next(iter(evaluation.columns))


_CONFUSED = ("class", "taken for", "share", "its own", "queries")

Rows = list[tuple[str, ...]]


def _tables(evaluation: Evaluation) -> tuple[str, Rows, Rows, Rows]:
    """Return the column that is shown, and the rows of the classes found worst, of the confusions and the nearest."""
    name = _column(evaluation)
    column = evaluation.columns[name]
    results = column.by_class or []
    if len(results) < 2:
        return name, [], [], []
    worst: Rows = [(one.name, f"{one.queries:,}", f"{one.map:.4f}") for one in results[:_SHOWN]]
    confused: Rows = [
        (one.name, one.taken_for, f"{one.share:.0%}", f"{one.correct:.0%}", f"{one.queries:,}")
        for one in confusions(evaluation)
    ]
    nearest: Rows = [
        (pair.first, pair.second, SHARED if pair.distance == 0 else f"{pair.distance}")
        for pair in evaluation.nearest_classes[:_SHOWN]
    ]
    return name, worst, confused, nearest


def _confusions_in_words(evaluation: Evaluation) -> str:
    """Say what the table of confusions holds, or why there is none."""
    name = _column(evaluation)
    column = evaluation.columns[name]
    if column.confusions is None:
        return "Items have several labels, so that no class is taken for another: confusions are of single labels."
    if not column.confusions:
        return f"The nearest items of every query are of its own class, {COLUMNS[name]}."
    count, classes = len(column.confusions), len(column.by_class or ())
    some = f", the {_SHOWN} largest" if count > _SHOWN else ""
    return (
        f"{count:,} of {classes:,} classes are taken for another, {COLUMNS[name]}{some}: the share of the items "
        "nearest to a class's queries that is of the other class, and the share of its own."
    )


SHARED = "the same code"


def _table(headings: Sequence[str], rows: Rows) -> str:
    """Return a table in HTML; its rows of classes that share a code are marked."""
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = ""
    for row in rows:
        cells = "".join(
            f"<td{' class=main' if heading in ('MAP', 'share', 'bits apart') else ''}>{escape(cell)}</td>"
            for heading, cell in zip(headings, row, strict=True)
        )
        body += f"<tr{' class=shared' if row[-1] == SHARED else ''}>{cells}</tr>"
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
