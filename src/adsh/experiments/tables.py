"""Render tables as Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape


class Best(str):
    """The best value of a column, printed in bold."""


@dataclass(frozen=True)
class Table:
    """A table of text whose first column names the row.

    Attributes:
        name: The label of the table in LaTeX.
        title: The caption.
        headings: One for each column.
        rows: The cells, row by row.
        notes: Sentences printed below the table.
    """

    name: str
    title: str
    headings: Sequence[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)


def markdown(table: Table) -> str:
    """Return a table as Markdown, with its title and notes."""
    cells = [[f"**{cell}**" if isinstance(cell, Best) else cell for cell in row] for row in table.rows]
    rule = ["---", *["---:"] * (len(table.headings) - 1)]
    lines = ["| " + " | ".join(row).replace("||", "| |") + " |" for row in (list(table.headings), rule, *cells)]
    return "\n".join([f"**{table.title}**", "", *lines, "", *(f"{note}  " for note in table.notes)]).rstrip() + "\n"


def latex(table: Table) -> str:
    """Return a table as LaTeX; it needs the package booktabs."""
    lines = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in (table.headings, *table.rows)]
    notes = [rf"\par\smallskip\footnotesize {_latex(note)}" for note in table.notes]
    return "\n".join(
        [
            r"\begin{table}[tb]", r"\centering\small",
            rf"\caption{{{_latex(table.title)}}}", rf"\label{{tab:{table.name}}}",
            r"\begin{tabular}{l" + "r" * (len(table.headings) - 1) + "}", r"\toprule",
            lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}", "",
        ]
    )  # fmt: skip


def html(table: Table, *, captioned: bool = True) -> str:
    """Return a table as HTML, in a box that scrolls if the table is too wide."""
    head = "".join(f"<th scope=col>{escape(heading)}</th>" for heading in table.headings)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in table.rows)
    notes = "".join(f"<p class=soft>{escape(note)}</p>" for note in table.notes)
    caption = f"<caption>{escape(table.title)}</caption>" if captioned else ""
    return (
        f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}'
    )


def _cells(row: list[str]) -> str:
    cells = [f"<b>{escape(cell)}</b>" if isinstance(cell, Best) else escape(cell) for cell in row]
    return f"<th scope=row>{cells[0]}</th>" + "".join(f"<td>{cell}</td>" for cell in cells[1:])


_SPECIAL = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
            "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--",
            "−": "$-$", "γ": r"$\gamma$", "²": "$^2$", "·": r"$\cdot$", "…": r"\ldots{}"}  # fmt: skip


def _latex(text: str) -> str:
    escaped = "".join(_SPECIAL.get(character, character) for character in text)
    return rf"\textbf{{{escaped}}}" if isinstance(text, Best) else escaped
