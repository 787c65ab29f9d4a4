"""Every code block of the README and the docs is run, or says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from .blocks import COMMANDS, PAGES, PROGRAMS, ROOT, SHOWN, Block, blocks_of, run

START = "docs/tutorial/start.md"  # see test_start.py
RUN_ELSEWHERE = {"docs/howto/serve.md": "tests/serve/test_docs.py"}  # by a test of its own, against a real service


def pages_to_run() -> list[Path]:
    names = {page: page.relative_to(ROOT).as_posix() for page in PAGES}
    return [
        page for page, name in names.items() if name not in (START, *RUN_ELSEWHERE) and any(map(runs, blocks_of(page)))
    ]


def runs(block: Block) -> bool:
    return block.reason is None and block.language in (*COMMANDS, *PROGRAMS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_block_is_run_or_says_why_not(page):
    """Commands and programs are run by default; `text` is shown; whatever else there is needs a reason."""
    name = page.relative_to(ROOT).as_posix()
    if name in RUN_ELSEWHERE:
        assert page.name in (ROOT / RUN_ELSEWHERE[name]).read_text(encoding="utf-8")
    for block in blocks_of(page):
        assert block.language in SHOWN or runs(block) or block.reason, (
            f"{block} is neither run nor marked: write ```bash, ```python or ```text, or put "
            "<!-- not run: the reason --> on the line above it"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_reason_names_tests_that_exist(page):
    for block in blocks_of(page):
        for word in (block.reason or "").replace(",", " ").split():
            if word.startswith(("tests/", "docs/")):
                assert (ROOT / word.rstrip(".;")).is_file(), f"{block} names {word}"


@pytest.mark.parametrize("page", pages_to_run(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_page_run_in_order(page, in_world):
    names = {"__name__": "__main__"}
    for block in filter(runs, blocks_of(page)):
        run(block, names)
