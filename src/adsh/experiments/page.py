"""All experiments on one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.resources import files

from ..evaluate import plots
from ..evaluate.page import case_in_html, figure_in_html
from .experiment_config import ExperimentConfig
from .rendering import Rendering
from .tables import html

_ONE_PANEL = 6.0  # inches
_MORE = """
nav { margin: 1rem 0; line-height: 2; } a { color: var(--accent); }
caption { text-align: left; padding: .3rem 0; font-weight: 600; }
table { margin-top: .6rem; } tbody th { color: inherit; font-weight: 500; } .figures { margin-top: 1rem; }
.figures figure:not(.wide) { max-width: 34rem; } .figures .wide svg { min-width: 0; }
"""


def page(config: ExperimentConfig, titles: Mapping[str, str], shown: Mapping[str, Rendering]) -> str:
    """The page; `titles` and `shown` by the name of the experiment."""
    style = files("adsh.evaluate").joinpath("page.css").read_text(encoding="utf-8")
    links = " · ".join(f'<a href="#{name}">{escape(name)}</a>' for name in shown)
    title = f"ADSH reproduced on {config.dataset}"
    seeds = ", ".join(map(str, config.seeds))
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{style}{_MORE}</style></head><body><main>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">Network {escape(config.network)}, preset {escape(config.preset)}, seeds {seeds}. '
        "The paper’s figures stand beside ours, where it has them.</p>",
        *[f"<nav>{links}</nav>"] * (len(shown) > 1),
    ]
    for name, of_one in shown.items():
        parts.append(f'<h2 id="{name}">{escape(titles[name])}</h2>')
        parts += [html(table, captioned=table.title != titles[name]) for table in of_one.tables]
        figures = [
            figure_in_html(figure, caption, plots.as_svg(drawn), wide=drawn.get_figwidth() > _ONE_PANEL)
            for figure, (caption, drawn) in of_one.figures.items()
        ]
        parts += ['<div class="figures">', *figures, "</div>"] if figures else []
        for method, cases in of_one.cases.items():
            parts.append(f"<h3>{escape(method)}</h3>" + "".join(case_in_html(case) for case in cases))
    return "\n".join([*parts, "</main></body></html>\n"])
