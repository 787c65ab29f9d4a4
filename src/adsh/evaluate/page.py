"""The report as one HTML page that needs nothing beside it: light and dark, phone to desktop, and paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .cases import Case, Shown
from .evaluation import COLUMNS, LEARNED, NETWORK, Evaluation

_CSS = """
:root { color-scheme: light dark; --ink: #1c2128; --soft: #57606a; --paper: #ffffff; --panel: #f5f7f9; --rule: #d8dee4;
  --accent: #1f6fc5; --wrong: #d1242f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #a0a8b3; --paper: #14171c; --panel: #1d2229;
  --rule: #343b45; --accent: #6fb1f5; --wrong: #ff6b6b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 64rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
p { margin: .5rem 0; max-width: 46rem; }
.soft, figcaption { color: var(--soft); font-size: .92rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .8rem; margin: 1.4rem 0; }
.card { background: var(--panel); border-radius: .6rem; padding: .8rem 1rem; }
.card b { display: block; font-size: 1.65rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .88rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .45rem .7rem .45rem 0; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; }
td.main { font-weight: 700; }
figure { margin: 0; padding: 1rem 1rem .7rem; background: var(--panel); border-radius: .6rem; }
figure svg { display: block; width: 100%; height: auto; }
figure svg text { font-family: inherit !important; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); gap: 1rem; }
.figures .wide { grid-column: 1 / -1; } .map_by_bits svg { max-width: 40rem; margin: auto; }
.case { display: grid; grid-template-columns: 6.2rem 1fr; gap: 1rem; padding: .8rem 0; border-bottom: 1px solid var(--rule); }
.found { display: grid; grid-template-columns: repeat(10, 1fr); gap: .45rem; }
.item { position: relative; min-width: 0; text-align: center; font-size: .76rem; line-height: 1.25; }
.item img, .item .blank { display: block; width: 100%; aspect-ratio: 1; object-fit: contain; background: var(--panel);
  border: 3px solid transparent; border-radius: .3rem; image-rendering: auto; }
.item .label { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; margin-top: .15rem; }
.item .distance { color: var(--soft); }
.wrong img, .wrong .blank { border-color: var(--wrong); }
.wrong .label { color: var(--wrong); font-weight: 600; }
.query { font-size: .84rem; }
.query img, .query .blank { border-color: var(--accent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 1.2rem .9rem 3rem; } .case { grid-template-columns: 1fr; }
  .found { grid-template-columns: repeat(5, 1fr); } .query { max-width: 7rem; }
  figure.wide { overflow-x: auto; } .wide svg { min-width: 34rem; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --paper: #fff; --panel: #fff; --rule: #bbb;
  --accent: #1f6fc5; --wrong: #c00; } body { max-width: none; padding: 0; font-size: 10.5pt; }
  figure, .card { border: 1px solid var(--rule); } figure, .case, .card, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""

_WIDE = ("map_by_bits", "hamming", "correlation")


def page(
    title: str,
    evaluations: Sequence[Evaluation],
    table: tuple[Sequence[str], list[tuple[str, ...]]],
    figures: dict[str, tuple[str, str]],
) -> str:
    """The page; `figures` are name -> (caption, svg)."""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_CSS}</style></head><body><main>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{_subtitle(evaluations)}</p>',
        _cards(evaluations[0]) if len(evaluations) == 1 else "",
        "<h2>Figures to quote</h2>",
        _table(*table),
        _reading(evaluations),
        "<h2>Curves</h2>",
        '<div class="figures">',
        *(_figure(name, caption, svg) for name, (caption, svg) in figures.items()),
        "</div>",
        _cases(evaluations),
        "<h2>What was run</h2>",
        *(_about(evaluation) for evaluation in evaluations),
        "</main></body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _subtitle(evaluations: Sequence[Evaluation]) -> str:
    sizes = {(evaluation.queries, evaluation.database, evaluation.k) for evaluation in evaluations}
    if len(sizes) > 1:
        return "The evaluations differ in queries, database or k: compare with care."
    queries, database, k = sizes.pop()
    over = "over the whole ranking" if k is None else f"over the first {k:,}"
    return f"{queries:,} queries against {database:,} database items, MAP {over}"


def _cards(evaluation: Evaluation) -> str:
    cards = []
    for name, words in ((LEARNED, "MAP, codes as learned"), (NETWORK, "MAP, database coded by the network")):
        if name in evaluation.columns:
            cards.append((f"{evaluation.columns[name].map_expected:.4f}", words))
    first = next(iter(evaluation.columns.values()))
    cards.append((f"{evaluation.bits} bits", f"{(evaluation.bits + 7) // 8} bytes an item"))
    cards.append((f"{first.distinct_codes:,}", f"distinct codes for {evaluation.database:,} items"))
    if "training_seconds" in evaluation.about:
        cards.append((f"{evaluation.about['training_seconds']:,.1f} s", "of training"))
    made = (f'<div class="card"><b>{escape(number)}</b><span>{escape(words)}</span></div>' for number, words in cards)
    return f'<div class="cards">{"".join(made)}</div>'


def _table(headings: Sequence[str], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    main = headings.index("MAP")
    body = "".join(
        "<tr>" + "".join(f'<td{" class=main" if i == main else ""}>{escape(cell)}</td>' for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _reading(evaluations: Sequence[Evaluation]) -> str:
    without = sum(evaluation.without_relevant for evaluation in evaluations)
    nothing = f" {without:,} queries have no relevant item at all and count 0." if without else ""
    return (
        '<p class="soft">Learned codes are few, so rankings are mostly ties. MAP is the expectation over all orders of tied '
        "items; <i>stable</i> keeps database order, as most published figures do; the tie range is the worst and the best "
        "order. <i>Codes as learned</i> is search in a labelled database; <i>codes by the network</i> is search among items "
        f"nobody labelled.{nothing}</p>"
    )


def _figure(name: str, caption: str, svg: str) -> str:
    wide = " wide" if name in _WIDE else ""
    return f'<figure class="{name}{wide}" role="img" aria-label="{escape(caption)}">{svg}<figcaption>{escape(caption)}</figcaption></figure>'


def _cases(evaluations: Sequence[Evaluation]) -> str:
    parts = []
    for evaluation in evaluations:
        for name, cases in evaluation.cases.items():
            if cases:
                heading = COLUMNS[name] if len(evaluations) == 1 else f"{evaluation.name}, {COLUMNS[name]}"
                parts.append(f"<h3>{escape(heading)}</h3>" + "".join(_case(case) for case in cases))
    if not parts:
        return ""
    words = (
        '<p class="soft">Queries drawn at random, each with its ten nearest and their Hamming distance; tied items are drawn '
        "at random. A red frame and a cross mark an item that shares no label with the query.</p>"
    )
    return "<h2>Case study</h2>" + words + "".join(parts)


def _case(case: Case) -> str:
    found = "".join(_item(shown, f'<span class="distance">at {shown.distance}</span>') for shown in case.found)
    query = _item(case.query, '<span class="distance">query</span>', kind="query")
    return f'<div class="case">{query}<div class="found">{found}</div></div>'


def _item(shown: Shown, below: str, kind: str = "") -> str:
    wrong = "" if shown.relevant else "wrong"
    words = escape(shown.label)
    picture = f'<img src="{shown.picture}" alt="{words}">' if shown.picture else '<span class="blank"></span>'
    cross = "" if shown.relevant else "✕ "
    classes = " ".join(part for part in ("item", kind, wrong) if part)
    return f'<div class="{classes}">{picture}<span class="label" title="{words}">{cross}{words}</span>{below}</div>'


def _about(evaluation: Evaluation) -> str:
    facts = {
        "queries": f"{evaluation.queries:,}",
        "database": f"{evaluation.database:,}",
        "MAP over": "all items" if evaluation.k is None else f"the first {evaluation.k:,} (divisor: {evaluation.divisor})",
        **{key.replace("_", " "): str(value) for key, value in evaluation.about.items()},
    }
    listed = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items())
    return f"<h3>{escape(evaluation.name)}</h3><dl>{listed}</dl>"
