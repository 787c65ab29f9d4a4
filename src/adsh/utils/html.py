"""The frame of the self-contained HTML pages: reports, search results and experiments share it and its style sheet."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files


def html_page(title: str, body: Iterable[str], style: str = "") -> str:
    """Return a whole page.

    Args:
        title: The title and the heading, as plain text.
        body: HTML that follows the heading; empty strings are left out.
        style: CSS that is added to the common style sheet.

    Returns:
        The page as HTML.
    """
    common = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{common}{style}</style></head><body><main>",
        f"<h1>{escape(title)}</h1>",
        *body,
        "</main></body></html>\n",
    ]
    return "\n".join(part for part in parts if part)
