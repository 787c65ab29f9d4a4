"""axe-core finds nothing serious in any state, light or dark; targets are large enough, and focus is seen."""

from __future__ import annotations

import pytest

from .conftest import DESKTOP, PHONE, SMALL, until
from .test_search import found


def serious(page) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], "runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]}
    violations = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for broken in Axe().run(page, options=options).response["violations"]:
            if broken["impact"] in ("serious", "critical", "moderate"):
                violations += [f"{scheme}: {broken['id']}: {node['html'][:120]}" for node in broken["nodes"]]
    return violations


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_nothing_serious_where_something_is_shown(visit, shown, size):
    page = visit(shown.url, size)
    assert serious(page) == []
    page.set_input_files("#file", shown.photos / "circle" / "1 é#1.png")
    found(page)
    page.evaluate("document.getElementById('options').open = true")
    page.get_by_label("square", exact=True).check()
    until(page, "document.querySelector('.label').textContent === 'square'")
    found(page).nth(1).hover()
    page.get_by_text("Compare the codes, bit by bit").click()
    assert serious(page) == []
    page.locator(".enlarge").nth(1).click()
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="How good").click()
    page.get_by_text("The figures as a table").click()
    assert serious(page) == []


def test_nothing_serious_where_something_is_wrong_or_missing(visit, shown, tmp_path):
    assert serious(visit(shown.bare)) == []
    page = visit(shown.empty)
    assert serious(page) == []
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"text"})
    page.get_by_text("That is not an image").wait_for()
    assert serious(page) == []
    page.get_by_role("tab", name="How good").click()
    assert serious(page) == []
    guarded = visit(shown.guarded, ready="dialog[open]")
    guarded.get_by_label("Token", exact=True).fill("guess")
    guarded.keyboard.press("Enter")
    guarded.get_by_text("not the token").wait_for()
    assert serious(guarded) == []
    guarded.keyboard.press("Escape")
    guarded.get_by_text("Enter the token").wait_for()
    assert serious(guarded) == []


def test_targets_are_large_enough_and_focus_is_seen(visit, shown):
    page = visit(shown.url, SMALL)
    page.evaluate("document.getElementById('options').open = true")
    small = page.evaluate(
        """() => [...document.querySelectorAll("a, button, input, summary, select")]
            .filter((one) => one.checkVisibility() && !one.matches(".skip"))
            .filter((one) => one.getBoundingClientRect().height < 24 || one.getBoundingClientRect().width < 24)
            .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert small == []
    seen = set()
    for _ in range(14):
        page.keyboard.press("Tab")
        style = page.evaluate(
            """() => {
                const at = document.activeElement;
                const drawn = at.matches(".chip input") ? at.nextElementSibling : at;
                return [at.id || at.className || at.tagName, getComputedStyle(drawn).outlineStyle];
            }"""
        )
        seen.add(style[0])
        assert style[1] != "none", style
    assert {"skip", "theme", "tab-search", "drop", "text", "k", "radius", "card"} <= seen


def test_nothing_moves_while_results_arrive(visit, shown):
    page = visit(shown.url)
    page.evaluate(
        """() => { globalThis.moved = 0; new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.moved += entry.value;
        }).observe({ type: "layout-shift", buffered: true }); }"""
    )
    page.wait_for_load_state("networkidle")
    assert page.evaluate("globalThis.moved") < 0.1
