"""Render experiments as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ..evaluate import plots
from ..evaluate.page import case_in_html, figure_in_html
from ..utils.html import html_page
from .experiment_config import ExperimentConfig
from .rendering import Rendering
from .tables import html

_MAX_NARROW = 6.0  # inches; a wider figure gets a row of its own
_STYLE = """
nav { margin: 1rem 0; line-height: 2; } a { color: var(--accent); }
caption { text-align: left; padding: .3rem 0; font-weight: 600; }
table { margin-top: .6rem; } tbody th { color: inherit; font-weight: 500; } .figures { margin-top: 1rem; }
.figures figure:not(.wide) { max-width: 34rem; } .figures .wide svg { min-width: 0; }
"""


def page(config: ExperimentConfig, titles: Mapping[str, str], renderings: Mapping[str, Rendering]) -> str:
    """Return the HTML page of several experiments.

    Args:
        config: The configuration of the experiments.
        titles: The title of each experiment, by its name.
        renderings: The tables and figures of each experiment, by its name.

    Returns:
        The whole page, its style and figures included.
    """
    links = " · ".join(f'<a href="#{name}">{escape(name)}</a>' for name in renderings)
    title = f"ADSH reproduced on {config.dataset}"
    seeds = ", ".join(map(str, config.seeds))
    body = [
        f'<p class="soft">Network {escape(config.network)}, preset {escape(config.preset)}, seeds {seeds}. '
        "Where the paper has a result, it is next to ours.</p>",
        *[f"<nav>{links}</nav>"] * (len(renderings) > 1),
    ]
    for name, rendering in renderings.items():
        body += [f'<h2 id="{name}">{escape(titles[name])}</h2>', *_body(rendering, titles[name])]
    return html_page(title, body, _STYLE)


def _body(rendering: Rendering, title: str) -> list[str]:
    """Return the tables, figures and example queries of an experiment as HTML."""
    parts = [html(table, captioned=table.title != title) for table in rendering.tables]
    figures = [
        figure_in_html(name, caption, plots.as_svg(figure), wide=figure.get_figwidth() > _MAX_NARROW)
        for name, (caption, figure) in rendering.figures.items()
    ]
    parts += ['<div class="figures">', *figures, "</div>"] if figures else []
    for method, cases in rendering.cases.items():
        parts.append(f"<h3>{escape(method)}</h3>" + "".join(case_in_html(case) for case in cases))
    return parts
