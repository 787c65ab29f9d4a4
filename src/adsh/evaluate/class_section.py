"""The part of a report about classes: which are found worst, and whose codes are near each other."""

from __future__ import annotations

from html import escape

from .evaluation import COLUMNS, NEW, Evaluation

_WORST, _NEAREST = 10, 10  # classes and pairs listed


def class_section(evaluation: Evaluation) -> str:
    """Return the section; empty where classes were not evaluated."""
    column = NEW if NEW in evaluation.columns else next(iter(evaluation.columns))
    results = evaluation.columns[column].by_class
    if not results or len(results) < 2:
        return ""
    rows = "".join(
        f"<tr><td>{escape(result.name)}</td><td>{result.queries:,}</td><td class=main>{result.map:.4f}</td></tr>"
        for result in results[:_WORST]
    )
    some = (
        f"the {_WORST} worst of {len(results):,} classes" if len(results) > _WORST else "all classes, the worst first"
    )
    return (
        f"<h2>Classes</h2><p class=soft>MAP by class, {COLUMNS[column]}: {some}.</p>"
        f'<div class="scroll"><table><thead><tr><th scope="col">class</th><th scope="col">queries</th>'
        f'<th scope="col">MAP</th></tr></thead><tbody>{rows}</tbody></table></div>{_pairs(evaluation)}'
    )


def _pairs(evaluation: Evaluation) -> str:
    """Return the classes whose codes are nearest; those that share one are marked."""
    if not evaluation.nearest_classes:
        return ""
    rows = "".join(
        f"<tr{' class=shared' if pair.distance == 0 else ''}>"
        f"<td>{escape(pair.first)}</td><td>{escape(pair.second)}</td>"
        f"<td class=main>{'the same code' if pair.distance == 0 else pair.distance}</td></tr>"
        for pair in evaluation.nearest_classes[:_NEAREST]
    )
    return (
        "<p class=soft>The classes whose codes are nearest, by the number of bits in which they differ. Classes with "
        "the same code cannot be told apart in a labelled database.</p>"
        f'<div class="scroll"><table><thead><tr><th scope="col">class</th><th scope="col">and</th>'
        f'<th scope="col">bits apart</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )
