"""What is said of the results: a guess, distances in words, an image large, and what to do where there is nothing."""

from __future__ import annotations

import json
import re

import pytest

from .conftest import DESKTOP, PHONE, SMALL, until
from .test_search import found, labels, no_sideways

SIZES = [DESKTOP, PHONE, SMALL]


@pytest.fixture
def image_file(shown):
    return shown.photos / "square" / "3 é#1.png"


def search(page, image_file):
    page.set_input_files("#file", image_file)
    return found(page)


def search_by_key(page, key="square/3 é#1.png"):
    page.get_by_label("Key or code").fill(key)
    page.keyboard.press("Enter")


def answered(page, **changed):
    """Let the service answer with these values changed; searches by key only, whose bodies can be sent on."""

    def change(route):
        answer = {**route.fetch().json(), **changed}
        route.fulfill(status=200, body=json.dumps(answer))

    page.route("**/v1/search", change)


@pytest.mark.parametrize("size", SIZES)
def test_a_guess_is_above_the_results(visit, shown, image_file, size):
    page = visit(shown.url, size)
    assert page.locator("#guess").is_hidden()
    with page.expect_response("**/v1/search") as answer:
        search(page, image_file)
    guess = answer.value.json()["guess"]
    assert (guess["label"], guess["items"], guess["field"]) == ("square", 42, "class")
    said = page.locator("#guess").inner_text()
    start = "Looks like" if guess["share"] >= 0.9 else "Perhaps"
    share = "over 99" if guess["share"] > 0.99 else str(round(100 * guess["share"]))
    assert said == f"{start} square, {share} %"
    assert "“square” among 42 items, the nearer counting far more" in page.locator("#guess-meaning").inner_text()
    assert page.locator("#guess").bounding_box()["y"] < page.locator(".card").first.bounding_box()["y"]
    assert no_sideways(page)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1.0, "Looks like glass, over 99 %"), (0.94, "Looks like glass, 94 %"), (0.9, "Looks like glass, 90 %"),
        (0.8949, "Perhaps glass, 89 %"), (0.38, "Perhaps glass, 38 %"), (0.001, "Perhaps glass, 1 %"),
    ],
)  # fmt: skip
def test_a_guess_is_as_sure_as_its_share(visit, shown, share, said):
    page = visit(shown.url)
    answered(page, guess={"label": "glass", "share": share, "items": 42, "field": "class"})
    search_by_key(page)
    found(page)
    assert page.locator("#guess").inner_text() == said
    assert said in page.locator("#said").inner_text()


def test_no_guess_is_shown_where_there_is_none(visit, shown, image_file):
    page = visit(shown.url)
    search(page, image_file)
    assert page.locator("#guess").is_visible()
    page.get_by_label("circle", exact=True).check()
    until(page, "document.querySelector('.label').textContent === 'circle'")
    assert page.locator("#guess").is_hidden()
    assert page.locator("#guess-meaning").is_hidden()
    assert page.locator("#said").inner_text() == "14 results"


def test_a_label_is_text_whatever_it_holds(visit, shown):
    page = visit(shown.url)
    label = "<img src=x onerror=\"document.title='broken'\">"
    answered(page, guess={"label": label, "share": 0.5, "items": 1, "field": "class"})
    search_by_key(page)
    found(page)
    assert page.locator("#guess b").inner_text() == label
    assert page.locator("#guess img").count() == 0


def test_distances_are_words_and_the_bits_are_folded_away(visit, shown, image_file):
    page = visit(shown.url)
    search(page, image_file)
    assert page.locator("#strip").is_hidden()
    assert page.locator(".card .strip").first.is_hidden()
    words = page.locator(".distance").all_inner_texts()
    distances = [re.match(r"\d+|same", bits)[0] for bits in page.locator(".in-bits").all_text_contents()]
    right = []
    for one in distances:
        bits = 0 if one == "same" else int(one)
        right.append("very close" if bits <= 1 else "close" if bits <= 3 else "less close" if bits <= 6 else "far")
    assert words == right
    assert len(set(words)) > 1
    assert page.locator("#order").inner_text() == f"from {words[0]} to {words[-1]}"
    page.get_by_text("Compare the codes, bit by bit").click()
    assert page.locator("#strip").is_visible()
    assert page.locator(".card .strip").first.is_visible()
    assert page.locator(".distance").all_inner_texts() == page.locator(".in-bits").all_inner_texts()
    search(page, shown.photos / "circle" / "3 é#1.png")
    until(page, "document.title.startsWith('3 ')")
    assert page.locator(".card .strip").first.is_visible()  # until it is folded again
    page.get_by_text("Compare the codes, bit by bit").click()
    assert page.locator(".card .strip").first.is_hidden()


@pytest.mark.parametrize(
    ("size", "dark", "touch"), [(DESKTOP, False, False), (PHONE, True, True), (SMALL, False, True)]
)
def test_an_image_is_shown_large(visit, shown, image_file, size, dark, touch):
    page = visit(shown.url, size, dark=dark, touch=touch)
    search(page, image_file)
    keys = page.locator("#results .key").all_inner_texts()
    view, card = page.locator("#view"), page.locator("#results li").nth(1)
    enlarge = card.get_by_role("button", name=f"Enlarge {keys[1]}")
    if touch:
        assert float(enlarge.evaluate("one => getComputedStyle(one).opacity")) > 0.5  # there is no hover
        enlarge.tap()
    else:
        assert enlarge.evaluate("one => getComputedStyle(one).opacity") == "0"
        card.hover()
        assert enlarge.evaluate("one => getComputedStyle(one).opacity") == "1"
        enlarge.click()
    assert view.is_visible()
    assert "#key" not in page.url  # it is no search
    image = page.locator("#view-image img")
    assert image.evaluate("img => img.decode().then(() => img.naturalWidth)") == 64
    assert image.bounding_box()["width"] > 1.5 * card.locator("img").bounding_box()["width"]
    assert page.locator("#view-key").inner_text() == keys[1]
    assert page.locator("#view-place").inner_text() == "2 of 24"
    box = view.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size[0]
    assert box["y"] + box["height"] <= size[1]
    assert page.locator("#view-search").bounding_box()["y"] + 24 < size[1]
    assert no_sideways(page)
    assert view.evaluate("one => getComputedStyle(one).backgroundColor") == (
        "rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)"
    )


def test_the_large_view_goes_on_and_back_by_keyboard_and_closes(visit, shown, image_file):
    page = visit(shown.url)
    search(page, image_file)
    keys = page.locator("#results .key").all_inner_texts()
    page.locator(".enlarge").nth(1).focus()
    page.keyboard.press("Enter")
    seen = [page.locator("#view-key").inner_text()]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        seen.append(page.locator("#view-key").inner_text())
    assert seen == [keys[at] for at in (1, 2, 3, 2, 1, 0, 0)]
    assert page.locator("#view-back").is_disabled()
    page.locator("#view-next").click()
    assert page.locator("#view-key").inner_text() == keys[1]
    page.keyboard.press("Escape")
    assert page.locator("#view").is_hidden()
    assert page.evaluate("document.activeElement.className") == "enlarge"
    page.locator(".enlarge").nth(23).click()
    assert page.locator("#view-next").is_disabled()
    page.mouse.click(5, 5)  # around it
    assert page.locator("#view").is_hidden()


def test_a_search_starts_from_the_large_view(visit, shown):
    page = visit(shown.url)  # also from the items of the first page
    key = page.locator("#results .key").nth(3).inner_text()
    page.locator(".enlarge").nth(3).click()
    assert page.locator("#view-distance").inner_text() == ""
    page.get_by_role("link", name="Search from this", exact=True).click()
    found(page)
    assert page.locator("#query-title").inner_text() == f"Items like {key}"
    assert page.locator("#view").is_hidden()


def test_the_large_view_works_with_a_token(visit, shown, image_file):
    page = visit(shown.guarded, ready="dialog[open]")
    page.get_by_label("Token", exact=True).fill("s3cret")
    page.keyboard.press("Enter")
    page.wait_for_selector(".card")
    page.locator(".enlarge").first.click()
    until(page, "document.querySelector('#view-image img')?.naturalWidth === 64")
    assert page.locator("#view-image img").get_attribute("src").startswith("blob:")


def test_where_nothing_is_near_the_page_says_how_far_the_nearest_is(visit, shown, image_file):
    page = visit(shown.url)
    search(page, image_file)
    page.get_by_label("circle", exact=True).check()
    until(page, "document.querySelector('.label').textContent === 'circle'")
    nearest = int(re.match(r"\d+", page.locator(".in-bits").first.text_content())[0])
    assert nearest > 1
    page.locator("#radius").focus()
    page.keyboard.press("Home")
    page.get_by_text("Nothing is that near").wait_for()
    said = f"The nearest item of those you chose is {nearest} bits away, farther than the 0 bits you allow."
    page.get_by_text(said, exact=True).wait_for()
    assert page.locator("#bar").is_hidden()
    page.get_by_role("button", name="Show it").click()
    found(page)
    assert set(labels(page)) == {"circle"}
    assert page.locator("#radius").input_value() == str(nearest)
    assert set(page.locator(".in-bits").all_text_contents()) == {f"{nearest} bits apart"}


def test_where_nothing_meets_a_filter_the_page_says_so(visit, shown):
    page = visit(shown.url)
    search_by_key(page)
    found(page)
    answered(page, matches=[], nearest=None)
    page.get_by_label("circle", exact=True).check()
    page.get_by_text("No item is what you chose: take the filter away.").wait_for()
    page.get_by_label("circle", exact=True).uncheck()
    page.get_by_text("There is no other item in the index.").wait_for()


@pytest.mark.parametrize("size", SIZES)
def test_without_images_the_page_says_how_to_get_them(visit, shown, image_file, size):
    page = visit(shown.bare, size)
    for searched in (False, True):
        if searched:
            search(page, image_file)
        hint = page.locator("#hint").inner_text()
        assert "started without --images" in hint
        assert "adsh serve MODEL --images photos/" in hint
        assert page.locator(".enlarge").count() == 0
        assert no_sideways(page)
    assert visit(shown.url).locator("#hint").is_hidden()
    assert visit(shown.empty).locator("#hint").is_hidden()


def test_images_that_are_elsewhere_are_explained(visit, shown, image_file):
    page = visit(shown.elsewhere)
    page.get_by_text("None of these images is in the folder that the service was given").wait_for()
    missing = visit(shown.url)
    missing.route(re.compile("%2F[0-4]%20.*/image$"), lambda route: route.fulfill(status=404))
    search(missing, shown.photos / "square" / "2 é#1.png")
    until(missing, "document.querySelectorAll('.card img').length < 24")  # one is not there, the others are
    assert missing.locator("#hint").is_hidden()


def test_a_model_of_features_gets_no_hint_of_images(visit, shown):
    page = visit(shown.bare)
    info = {**page.evaluate("fetch('v1/info').then((answer) => answer.json())"), "takes_images": False}
    page.route("**/v1/info", lambda route: route.fulfill(status=200, body=json.dumps(info)))
    page.reload()
    page.wait_for_selector(".card")
    assert page.locator("#hint").is_hidden()


DRAG = """([name, kind, where]) => {
    const dataTransfer = new DataTransfer();
    if (kind === "file") dataTransfer.items.add(new File(["a"], "a.png", { type: "image/png" }));
    else dataTransfer.setData(kind, "https://example.org/");
    const relatedTarget = name === "dragleave" && where !== "window" ? document.body : null;
    const target = where === "window" ? document.body : document.querySelector(where);
    const event = new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer, relatedTarget });
    target.dispatchEvent(event);
    return event.defaultPrevented;
}"""


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (PHONE, True)])
def test_the_whole_page_takes_a_file_that_is_dragged_over_it(visit, shown, image_file, size, dark):
    page = visit(shown.url, size, dark=dark)
    overlay = page.locator("#overlay")
    assert overlay.is_hidden()
    assert page.evaluate(DRAG, ["dragenter", "file", "footer"])
    assert overlay.is_visible()
    assert overlay.bounding_box() == {"x": 0, "y": 0, "width": size[0], "height": size[1]}
    page.evaluate(DRAG, ["dragleave", "file", "footer"])  # to another element
    assert overlay.is_visible()
    page.evaluate(DRAG, ["dragleave", "file", "window"])
    assert overlay.is_hidden()
    page.evaluate(DRAG, ["dragover", "file", "header"])
    assert overlay.is_visible()
    assert page.evaluate(DRAG, ["drop", "file", "header"])
    assert overlay.is_hidden()
    page.get_by_role("alert").get_by_text("This image cannot be used").wait_for()  # it is a single letter


def test_a_text_that_is_dragged_is_left_to_the_browser(visit, shown):
    page = visit(shown.url)
    for name in ("dragenter", "dragover", "drop"):
        assert not page.evaluate(DRAG, [name, "text/plain", "#text"])
        assert page.locator("#overlay").is_hidden()
    assert page.locator("#notice").is_hidden()


def test_a_drag_closes_the_large_view(visit, shown):
    page = visit(shown.url)
    page.locator(".enlarge").first.click()
    page.evaluate(DRAG, ["dragenter", "file", "body"])
    assert page.locator("#view").is_hidden()
    assert page.locator("#overlay").is_visible()


def test_nothing_is_to_be_dropped_on_a_touch_screen(visit, shown):
    for touch in (True, False):
        page = visit(shown.url, PHONE, touch=touch)
        said = page.locator("main").inner_text().lower()
        assert ("drop" in said) != touch
        assert ("paste" in said) != touch
        assert ("from your photos or the camera" in said) == touch
