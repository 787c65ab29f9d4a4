"""Tables as Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape


class Best(str):
    """A figure that is the best of its column."""


@dataclass(frozen=True)
class Table:
    """Text, row by row; the first column names the row."""

    name: str  # of its files
    title: str
    headings: Sequence[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)


def markdown(table: Table) -> str:
    """The table with its title and notes."""
    marked = [[f"**{cell}**" if isinstance(cell, Best) else cell for cell in row] for row in table.rows]
    rule = ["---", *["---:"] * (len(table.headings) - 1)]
    lines = ["| " + " | ".join(row).replace("||", "| |") + " |" for row in (list(table.headings), rule, *marked)]
    return "\n".join([f"**{table.title}**", "", *lines, "", *(f"{note}  " for note in table.notes)]).rstrip() + "\n"


def latex(table: Table) -> str:
    """A booktabs table."""
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
    """A table element in a box that scrolls where it is too wide."""
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
    plain = "".join(_SPECIAL.get(character, character) for character in text)
    return rf"\textbf{{{plain}}}" if isinstance(text, Best) else plain


FORMATS: dict[str, Callable[[Table], str]] = {"md": markdown, "tex": latex}
