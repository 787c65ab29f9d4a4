"""The report as one self-contained HTML page: light and dark, for phones, desktops and print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..utils.html import html_page
from ..utils.words import count
from .class_section import class_section
from .columns import COLUMNS, HASHED, LEARNED, NETWORK, NEW, Column
from .comparison_section import comparison_section
from .cross_fit import PooledColumn
from .evaluation import Evaluation
from .examples import Case, Shown
from .in_words import headline, worst_confusions

_WIDE = ("map_by_bits", "hamming", "correlation")
_APPENDIX = ("balance", "loss", "rows", "hamming", "correlation")  # figures of bits and of training


def page(
    title: str,
    evaluations: Sequence[Evaluation],
    table: tuple[Sequence[str], list[tuple[str, ...]]],
    figures: dict[str, tuple[str, str]],
    notes: Sequence[str] = (),
) -> str:
    """Return the report as one HTML page.

    Args:
        title: of the page.
        evaluations: what it reports.
        table: headings and rows.
        figures: caption and svg, by name.
        notes: sentences below the table.

    Returns:
        The HTML of the whole page.
    """
    one = len(evaluations) == 1
    body = [
        _lead(evaluations[0]) if one else "",
        f'<p class="soft">{_subtitle(evaluations)}</p>',
        _cards(evaluations[0]) if one else "",
        _cases("What some queries found", evaluations, first=True) if one else "",
        comparison_section(evaluations),
        class_section(evaluations[0]) if one else "",
        "<h2>Figures to quote</h2>",
        _table(*table),
        *(f'<p class="soft">{escape(note)}</p>' for note in notes),
        _reading(evaluations),
        _figures("Curves", {name: drawn for name, drawn in figures.items() if name not in _APPENDIX}),
        _cases("What they found by other codes" if one else "What some queries found", evaluations, first=False),
        "<h2>What was run</h2>",
        *(_about(evaluation) for evaluation in evaluations),
        _figures("Appendix: bits and training", {name: figures[name] for name in _APPENDIX if name in figures}),
    ]
    return html_page(title, body)


def _lead(evaluation: Evaluation) -> str:
    """Return what a reader wants to know first, in words."""
    confused = worst_confusions(evaluation)
    return f'<p class="lead">{escape(headline(evaluation))}</p>' + f"<p>{escape(confused)}</p>" * bool(confused)


def _figures(heading: str, figures: dict[str, tuple[str, str]]) -> str:
    """Return a section of figures; empty without any."""
    drawn = [figure_in_html(name, caption, svg, wide=name in _WIDE) for name, (caption, svg) in figures.items()]
    return f'<h2>{heading}</h2><div class="figures">{"".join(drawn)}</div>' if drawn else ""


def _subtitle(evaluations: Sequence[Evaluation]) -> str:
    sizes = {(e.queries, e.database, e.k, e.divisor if e.k else None) for e in evaluations}
    if len(sizes) > 1:
        return "The evaluations differ in queries, database, k or divisor: compare with care."
    queries, database, k, _ = sizes.pop()
    over = "over the whole ranking" if k is None else f"over the first {k:,}"
    return f"{queries:,} queries against {database:,} database items, MAP {over}"


def _cards(evaluation: Evaluation) -> str:
    captions = {
        LEARNED: "codes as learned",
        NETWORK: "trained items, coded by the network",
        HASHED: "database encoded like the queries",
        NEW: f"{evaluation.queries:,} new items",
    }
    scores: dict[str, Column | PooledColumn] = {**evaluation.columns}
    found = evaluation.cross_fit
    if found is not None:  # all of it, so that the figures are of the same queries
        captions[NEW] = f"{found.queries:,} new items"
        captions = {name: f"{words}, {found.folds} folds" for name, words in captions.items()}
        scores = {**found.columns}
    shown = [name for name in captions if name in scores]
    cards = [(f"{scores[name].map_expected:.4f}", f"MAP, {captions[name]}") for name in shown]
    size = (evaluation.bits + 7) // 8
    cards.append((count(size, "byte"), f"an item, of {evaluation.database:,}"))
    if "training_seconds" in evaluation.about:
        cards.append((f"{evaluation.about['training_seconds']:,.1f} s", "of training"))
    html = (f'<div class="card"><b>{escape(number)}</b><span>{escape(words)}</span></div>' for number, words in cards)
    return f'<div class="cards">{"".join(html)}</div>'


def _table(headings: Sequence[str], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    main = headings.index("MAP")
    body = "".join(
        "<tr>"
        + "".join(f"<td{' class=main' if i == main else ''}>{escape(cell)}</td>" for i, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _reading(evaluations: Sequence[Evaluation]) -> str:
    most = max(evaluation.without_relevant for evaluation in evaluations)
    upto = "" if len({evaluation.without_relevant for evaluation in evaluations}) == 1 else "Up to "
    nothing = f" {upto}{most:,} queries have no relevant item at all and count 0." if most else ""
    return (
        '<p class="soft">Learned codes are few, so rankings are mostly ties. MAP is the expectation over all orders of '
        "tied items; <i>stable</i> keeps database order, as MATLAB's figures do; the tie range is the worst and "
        "the best order. <i>Codes as learned</i> is search in a labelled database. <i>Trained items</i> are coded like "
        "a query, but the model has seen them; <i>new items</i> it has not: that is search among items that nobody "
        "labelled, here each query among the others. <i>95 %</i> is the interval of MAP by bootstrap over the queries; "
        "<i>over classes</i>, each class counts the same; <i>chance</i> is the MAP of a random order. NDCG has gain "
        f"2^(labels shared) - 1.{nothing}</p>"
    )


def figure_in_html(name: str, caption: str, svg: str, *, wide: bool) -> str:
    """Return a figure with its caption; a wide one has a row to itself.

    Args:
        name: becomes its class.
        caption: below it.
        svg: the figure.
        wide: whether it has a row to itself.

    Returns:
        The HTML of the figure.
    """
    kind = f"{name} wide" if wide else name
    return f'<figure class="{kind}">{svg}<figcaption>{escape(caption)}</figcaption></figure>'


def _cases(title: str, evaluations: Sequence[Evaluation], *, first: bool) -> str:
    """Return queries with what they found; of one evaluation those of its first column, or of the others."""
    parts = []
    for evaluation in evaluations:
        for place, (name, cases) in enumerate(evaluation.cases.items()):
            if cases and (len(evaluations) > 1 or (place == 0) == first):
                heading = COLUMNS[name] if len(evaluations) == 1 else f"{evaluation.name}, {COLUMNS[name]}"
                parts.append(f"<h3>{escape(heading)}</h3>" + "".join(case_in_html(case) for case in cases))
    if not parts:
        return ""
    words = (
        '<p class="soft">Queries drawn at random, each with its ten nearest and their Hamming distance; tied items are '
        "drawn at random. A red frame and a cross mark an item that shares no label with the query.</p>"
    )
    return f"<h2>{title}</h2>" + words + "".join(parts)


def case_in_html(case: Case) -> str:
    """Return a query and its nearest items, in a row."""
    found = "".join(_item(shown, f'<span class="distance">at {shown.distance}</span>') for shown in case.found)
    query = _item(case.query, '<span class="distance">query</span>', kind="query")
    return f'<div class="case">{query}<div class="found">{found}</div></div>'


def _item(shown: Shown, below: str, kind: str = "") -> str:
    wrong = "" if shown.relevant else "wrong"
    words = escape(shown.label)
    image = f'<img src="{shown.image}" alt="{words}">' if shown.image else ""
    cross = "" if shown.relevant else "✕ "
    plain = "" if shown.image else "plain"
    classes = " ".join(part for part in ("item", kind, wrong, plain) if part)
    return f'<div class="{classes}">{image}<span class="label" title="{words}">{cross}{words}</span>{below}</div>'


def _about(evaluation: Evaluation) -> str:
    facts = {
        "queries": f"{evaluation.queries:,}",
        "database": f"{evaluation.database:,}",
        "without a relevant item": f"{evaluation.without_relevant:,} queries, which count 0",
        "MAP over": "all items"
        if evaluation.k is None
        else f"the first {evaluation.k:,} (divisor: {evaluation.divisor})",
        **{key.replace("_", " "): str(value) for key, value in evaluation.about.items()},
    }
    listed = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items())
    return f"<h3>{escape(evaluation.name)}</h3><dl>{listed}</dl>"
