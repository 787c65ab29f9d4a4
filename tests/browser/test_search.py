"""Asking: by an image that is dropped, pasted or picked, by an item, by a code; how many, how far, of which class."""

from __future__ import annotations

import base64
import re

import pytest

from .conftest import DESKTOP, PHONE, SMALL, until


def hand_over(page, kind: str, path, media_type: str) -> None:
    """A real event with a real file in its DataTransfer, as a browser makes it."""
    data = base64.b64encode(path.read_bytes()).decode()
    page.evaluate(
        """([kind, data, name, type]) => {
            const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], name, { type }));
            const options = { bubbles: true, cancelable: true };
            const target = document.getElementById("drop");
            if (kind === "paste") {
                document.body.dispatchEvent(new ClipboardEvent("paste", { ...options, clipboardData: transfer }));
            } else {
                for (const name of ["dragenter", "dragover", "drop"])
                    target.dispatchEvent(new DragEvent(name, { ...options, dataTransfer: transfer }));
            }
        }""",
        [kind, data, path.name, media_type],
    )


def found(page):
    page.wait_for_selector("#results:not([aria-busy]) .card .distance")
    return page.locator("#results .card")


def labels(page) -> list[str]:
    return page.locator("#results .label").all_text_contents()


def no_sideways(page) -> bool:
    return page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.fixture
def image_file(shown):
    return shown.photos / "square" / "3 é#1.png"


@pytest.mark.parametrize(("kind", "size"), [("drop", DESKTOP), ("drop", PHONE), ("drop", SMALL), ("paste", DESKTOP)])
def test_an_image_that_is_dropped_or_pasted_finds_its_like(visit, shown, image_file, kind, size):
    page = visit(shown.url, size)
    assert no_sideways(page)
    hand_over(page, kind, image_file, "image/png")
    assert found(page).count() == 24
    assert labels(page)[:10] == ["square"] * 10
    assert page.locator("#thumb img").evaluate("img => img.decode().then(() => img.naturalWidth)") == 64
    assert re.fullmatch(r"24 results\. (Looks like|Perhaps) square, (over )?\d+ %", page.locator("#said").inner_text())
    assert page.title() == f"{image_file.name} · 24 results · adsh"
    until(page, "[...document.querySelectorAll('.card img')].slice(0, 4).every((img) => img.naturalWidth)")
    assert no_sideways(page)


def test_an_image_is_picked_by_keyboard(visit, shown, image_file):
    page = visit(shown.url)
    choosers = []
    page.on("filechooser", lambda chooser: choosers.append(chooser))  # early: it takes the browser a moment
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "drop"
    page.keyboard.press("Enter")
    until(page, lambda: choosers)
    choosers[0].set_files(image_file)
    found(page)
    assert set(labels(page)[:10]) == {"square"}


def test_bits_that_differ_are_marked_and_described(visit, shown, image_file):
    page = visit(shown.url)
    page.set_input_files("#file", image_file)
    found(page)
    page.get_by_text("Compare the codes, bit by bit").click()
    bits = page.locator("#strip").get_attribute("aria-label").rpartition(" ")[2]
    assert re.fullmatch("[01]{24}", bits)
    assert f"{int(bits, 2):06x}" == page.locator("#hex").inner_text()
    for card in page.locator("#results .card").all():
        distance = re.match(r"(\d+) bits? apart|same code", card.locator(".in-bits").inner_text())
        label = card.locator(".strip").get_attribute("aria-label")
        marked = card.locator("path.marked")
        bars = marked.get_attribute("d").count("M") if marked.count() else 0
        assert bars == int(distance[1] or 0)
        assert label.startswith(f"differs in {bars} of 24 bits" if bars else "all 24 bits are the same")


def test_a_result_is_searched_from_and_back_again(visit, shown, image_file):
    page = visit(shown.url)
    page.set_input_files("#file", image_file)
    key = found(page).nth(2).locator(".key").inner_text()
    found(page).nth(2).click()
    until(page, "document.title.startsWith('square/')")
    assert "#key=square%2F" in page.url
    assert page.locator("#query-title").inner_text() == f"Items like {key}"
    assert found(page).count() == 24
    assert key not in page.locator("#results .key").all_inner_texts()  # it is beside the results
    assert page.evaluate("document.activeElement.id") == "query-title"
    page.go_back()
    until(page, "(name) => document.title.startsWith(name)", image_file.name)
    page.go_back()
    page.wait_for_selector("#empty h2")
    again = visit(f"{shown.url}/#key=circle%2F1%20%C3%A9%231.png", ready=".card .distance")  # a link that was shared
    assert labels(again)[0] == "circle"
    assert again.locator("#thumb img").evaluate("img => img.decode().then(() => img.naturalWidth)") == 64


def test_cards_are_reached_and_opened_by_keyboard(visit, shown):
    page = visit(shown.url)
    page.locator("#results .card").nth(1).focus()
    key = page.locator("#results .key").nth(1).inner_text()
    page.keyboard.press("Enter")
    found(page)
    assert page.locator("#query-title").inner_text() == f"Items like {key}"


def test_a_result_may_be_dragged_to_the_query(visit, shown):
    page = visit(shown.url)
    key = page.locator("#results .key").nth(4).inner_text()
    page.locator("#results .card").nth(4).evaluate(
        """(card) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.setData("text/uri-list", card.href);
            for (const name of ["dragenter", "dragover", "drop"])
                document.getElementById("drop").dispatchEvent(new DragEvent(name, { bubbles: true, dataTransfer }));
        }"""
    )
    found(page)
    assert page.locator("#query-title").inner_text() == f"Items like {key}"
    assert not page.evaluate("document.body.classList.contains('dragging')")


def test_a_key_or_a_code_may_be_typed(visit, shown):
    page = visit(shown.url)
    page.get_by_label("Key or code").fill("triangle/2 é#1.png")
    page.keyboard.press("Enter")
    found(page)
    assert labels(page)[0] == "triangle"
    code = page.locator("#hex").text_content()
    page.get_by_label("Key or code").fill(code)
    page.get_by_role("button", name="Search", exact=True).click()
    until(page, "document.title.startsWith('code ')")
    assert labels(page)[0] == "triangle"
    page.get_by_label("Key or code").fill("nothing of this name")
    page.keyboard.press("Enter")
    page.get_by_text("There is no item with the key 'nothing of this name'").wait_for()


def test_sliders_and_classes_narrow_the_search(visit, shown, image_file):
    page = visit(shown.url)
    page.set_input_files("#file", image_file)
    found(page)
    page.locator("#k").focus()
    page.keyboard.press("Home")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    until(page, "document.querySelectorAll('.card').length === 5")
    assert page.locator("#k-value").inner_text() == "5"
    assert page.locator("#k").get_attribute("aria-valuetext") == "5 results"
    assert page.evaluate("document.activeElement.id") == "k"
    page.get_by_label("circle", exact=True).check()
    page.get_by_label("triangle", exact=True).check()
    until(page, "[...document.querySelectorAll('.label')].every((label) => label.textContent !== 'square')")
    assert len(labels(page)) == 5
    page.locator("#radius").focus()
    assert page.locator("#radius-value").inner_text() == "any distance"
    page.keyboard.press("Home")
    page.get_by_text("Nothing is that near").wait_for()
    assert page.locator("#radius-value").inner_text() == "very close · 0 bits"
    page.get_by_label("circle", exact=True).uncheck()
    page.get_by_label("triangle", exact=True).uncheck()
    page.wait_for_selector(".card .distance")
    assert set(page.locator(".in-bits").all_text_contents()) == {"same code"}
