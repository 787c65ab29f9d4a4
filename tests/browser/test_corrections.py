"""Labels are corrected from the page: one result or several, and undone; on a desktop and on a phone."""

from __future__ import annotations

import shutil

import pytest

from ..serve.conftest import Process
from .conftest import DESKTOP, PHONE, TOKEN, until
from .test_accessible import serious
from .test_search import found, no_sideways


@pytest.fixture
def own(shown, tmp_path):
    """A service with an index of its own, behind the token."""
    shutil.copytree(shown.model, tmp_path / "model")
    server = Process(
        tmp_path / "model", "--images", shown.photos, "--token", TOKEN, log=tmp_path / "log.jsonl"
    )  # fmt: skip
    yield server.url
    assert server.end() == 0


def open_page(visit, url, size, touch):
    page = visit(url, size, touch=touch, ready="dialog[open]")
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.keyboard.press("Enter")
    page.locator(".card").first.wait_for()
    return page


def search_like(page, key):
    page.evaluate("key => { location.hash = '#key=' + encodeURIComponent(key); }", key)
    return found(page)


@pytest.mark.parametrize(("size", "touch"), [(DESKTOP, False), (PHONE, True)])
def test_several_results_are_corrected_and_it_is_undone(visit, own, size, touch):
    page = open_page(visit, own, size, touch)
    search_like(page, "circle/1 é#1.png")
    boxes = page.get_by_role("checkbox", name="Correct ")
    for at in (0, 1):
        boxes.nth(at).check()
    bar = page.locator("#correct")
    assert "2 items chosen" in bar.inner_text()
    assert no_sideways(page)
    assert serious(page) == []
    page.get_by_label("What they are").fill("ring")
    with page.expect_response("**/v1/corrections") as answered:
        bar.get_by_role("button", name="Correct").click()
    assert answered.value.json()["items"][0]["labels"] == ["ring"]
    bar.get_by_text("2 items corrected").wait_for()
    until(page, "[...document.querySelectorAll('.label')].filter((one) => one.textContent === 'ring').length === 2")
    bar.get_by_role("button", name="Undo").click()
    until(page, "[...document.querySelectorAll('.label')].every((one) => one.textContent !== 'ring')")
    assert bar.is_hidden()
    assert no_sideways(page)


def test_a_label_that_is_wrong_is_taken_away_and_choosing_is_cancelled(visit, own):
    page = open_page(visit, own, DESKTOP, False)
    search_like(page, "square/3 é#1.png")
    box = page.get_by_role("checkbox", name="Correct ").first
    box.check()
    page.locator("#correct").get_by_role("button", name="Cancel").click()
    assert page.locator("#correct").is_hidden()
    assert not box.is_checked()
    box.focus()
    page.keyboard.press("Space")  # without a mouse
    with page.expect_response("**/v1/corrections") as answered:
        page.locator("#correct").get_by_role("button", name="Label is wrong").click()
    [item] = answered.value.json()["items"]
    assert (item["before"], item["labels"]) == (["square"], [])
    page.locator("#correct").get_by_text("1 item corrected").wait_for()


def test_no_boxes_before_a_search(visit, shown):
    page = visit(shown.url)
    assert page.get_by_role("checkbox", name="Correct ").count() == 0
