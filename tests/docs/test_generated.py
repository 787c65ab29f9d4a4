"""What the docs are made of when they are built: commands, routes and results, and links that lead somewhere."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .blocks import DOCS, PAGES, ROOT, load_hooks


@pytest.fixture(scope="module")
def hooks():
    """docs/hooks.py, as mkdocs loads it."""
    return load_hooks()


def test_every_command_and_flag_is_in_the_reference(hooks):
    import typer

    from adsh.cli.app import app

    text = hooks.GENERATED["cli"]()
    group: Any = typer.main.get_command(app)
    context = group.context_class(group, info_name="adsh")
    found = hooks.cli_reference.commands(context)
    flags_shown = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text))
    assert len(found) > 20
    for one in found:
        if not hasattr(one.command, "commands"):
            assert f"\n## {hooks.cli_reference.name_of(one)}\n" in f"\n{text}", one.command_path
            flags = {flag for parameter in one.command.params for flag in parameter.opts if flag.startswith("-")}
            assert flags <= flags_shown | {"-h", "--help"}, one.command_path
    assert "default: " not in text  # they have a column of their own


def test_every_route_is_in_the_reference(hooks):
    pytest.importorskip("fastapi")
    text, document = hooks.GENERATED["http"](), hooks.http_reference.description()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"## {method.upper()} {path}\n" in text
    for name in re.findall(r"\]\(#(\w+)\)", text):
        assert re.search(f"^### {name}$", text, re.MULTILINE | re.IGNORECASE), name


def test_every_table_of_results_can_be_generated(hooks):
    for name, make in {**hooks.headline_tables.TABLES, **hooks.results_tables.TABLES}.items():
        text = make()
        assert text.count("\n") >= 2, name
        widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
        assert len(widths) <= 1, name


def test_every_mark_of_a_page_is_known(hooks):
    marks = [
        mark for page in PAGES for mark in re.findall(r"<!-- generated: (\S+) -->", page.read_text(encoding="utf-8"))
    ]
    assert set(marks) == set(hooks.GENERATED)


def test_links_to_files_lead_somewhere(hooks):
    """mkdocs checks links between pages; these are those of the README, and those that leave docs/."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'src="([^"]+)"', text):
            if not re.match(r"[a-z]+:", target):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_every_page_is_in_the_navigation():
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        name = page.relative_to(DOCS).as_posix()
        assert name in listed or name.startswith("decisions/"), name


def test_a_decision_fits_a_screen_and_leads_to_its_lab_notes():
    for page in (DOCS / "decisions").glob("[0-9]*.md"):
        text, notes = page.read_text(encoding="utf-8"), page.parent / "notes" / page.name
        assert len(text.split()) <= 350, f"{page.name}: put what was tried into decisions/notes/"
        assert not notes.exists() or f"](notes/{page.name})" in text


def test_pages_fetch_nothing_from_elsewhere():
    assert "font: false" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in [*PAGES, *DOCS.glob("images/*.svg"), *DOCS.glob("*.css")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"""(?:src=["']|url\(["']?|!\[[^]]*\]\()https?:""", text), path
