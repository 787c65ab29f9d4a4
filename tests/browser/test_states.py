"""What a person sees when there is nothing, when something is wrong, and before the token is given."""

from __future__ import annotations

import json

import pytest

from ..serve.conftest import Process
from .conftest import PHONE, SHAPES, TOKEN, until
from .test_search import found, hand_over, no_sideways


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not an image\n" * 10)
    return path


@pytest.fixture
def image_file(shown):
    return shown.photos / "circle" / "3 é#1.png"


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_goes_round_and_is_remembered(visit, shown, dark):
    page = visit(shown.url, dark=dark)

    def background() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, night = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
    assert background() == (night if dark else light)
    button = page.get_by_role("button", name="theme")
    seen = []
    for _ in range(2):
        button.click()
        seen.append((button.inner_text()[1:], background()))
    assert seen == [("Light", light), ("Dark", night)]
    page.reload()
    page.wait_for_selector(".card")
    assert background() == night
    button.click()
    assert background() == (night if dark else light)


def test_a_text_is_refused_here_and_by_the_server(visit, shown, text_file, image_file):
    page = visit(shown.url)
    page.set_input_files("#file", image_file)
    found(page)
    hand_over(page, "drop", text_file, "text/plain")
    alert = page.get_by_role("alert").filter(has_text="That is not an image")
    alert.get_by_text("notes.txt has another format: choose a JPEG, PNG").wait_for()
    assert page.locator(".card .distance").count() == 24  # what was found stays
    hand_over(page, "drop", text_file, "image/png")  # which only its bytes tell
    page.get_by_role("alert").get_by_text("This image cannot be used").wait_for()
    said = page.locator("#notice p").inner_text()
    assert "send a JPEG, PNG, GIF, WebP, BMP or AVIF file" in said
    page.set_input_files("#file", image_file)
    found(page)
    assert page.locator("#notice").is_hidden()


def test_a_file_that_is_too_large_is_not_sent(visit, shown, tmp_path):
    page = visit(shown.url)
    large = tmp_path / "large.png"
    large.write_bytes(b"\0" * (17 << 20))
    page.set_input_files("#file", large)
    page.get_by_text("larger than the 16 MiB that this service takes").wait_for()


def test_the_token_is_requested_until_it_is_right(visit, shown, image_file):
    page = visit(shown.guarded, ready="dialog[open]")
    box = page.get_by_label("Token", exact=True)
    assert page.evaluate("document.activeElement.id") == "token-text"
    for wrong, said in (("guess", "not the token of this service"), ("bad ü", "letters, digits and signs")):
        box.fill(wrong)
        page.keyboard.press("Enter")
        page.get_by_text(said).wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Enter the token").click()
    box.fill(TOKEN)
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector(".card")
    page.set_input_files("#file", image_file)
    found(page)
    until(page, "document.querySelector('.card img').naturalWidth === 64")
    assert page.locator(".card img").first.get_attribute("src").startswith("blob:")
    stored = page.evaluate("[JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]")
    assert TOKEN in stored[0]
    assert TOKEN not in stored[1] + stored[2]
    page.locator(".card").nth(3).click()
    until(page, "document.title.startsWith('circle/')")
    page.reload()
    found(page)  # the tab still has it
    assert not page.locator("dialog#token").is_visible()


def test_a_server_that_stops_and_comes_back(visit, shown, image_file, tmp_path):
    server = Process(shown.model, shown.model / "index", log=tmp_path / "log.jsonl")
    page = visit(server.url)
    assert page.locator(".none").count() == 12  # no --images: their names
    server.end()
    page.set_input_files("#file", image_file)
    page.get_by_role("alert").get_by_text("The server does not answer").wait_for()
    assert page.locator(".skeleton").count() == 0
    page.route("**/v1/search", lambda route: route.fulfill(status=200, body=json.dumps(NOTHING)))
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("Nothing found").first.wait_for()


NOTHING = {"code": "000000", "bits": 24, "ranking": "hamming", "reranked": False, "matches": []}


def test_a_busy_server_is_tried_again(visit, shown, image_file):
    page = visit(shown.url)
    refusal = {"detail": "64 images are waiting already: try again in a second"}
    requests = []

    def answer(route):
        requests.append(route)
        if len(requests) == 1:
            route.fulfill(status=429, headers={"Retry-After": "1"}, body=json.dumps(refusal))
        else:
            route.continue_()

    page.route("**/v1/search", answer)
    page.set_input_files("#file", image_file)
    page.get_by_text("64 images are waiting already. Trying again in 1 second.").wait_for()
    assert found(page).count() == 24
    assert page.locator("#notice").is_hidden()


def test_skeletons_show_while_the_first_results_are_on_their_way(visit, shown, image_file):
    page = visit(shown.url)
    held = []
    page.route("**/v1/search", lambda route: held.append(route))
    page.set_input_files("#file", image_file)
    page.wait_for_selector(".skeleton")
    assert page.locator("#results").get_attribute("aria-busy") == "true"
    until(page, lambda: held)  # the page shows skeletons before it sends
    held[0].continue_()
    assert found(page).count() == 24


def test_an_image_that_comes_before_the_page_is_ready_is_kept(visit, shown, image_file):
    page = visit(shown.url)
    held = []
    page.route("**/v1/info", lambda route: held.append(route))
    page.reload()
    page.set_input_files("#file", image_file)
    until(page, lambda: held)
    held[0].continue_()
    assert found(page).count() == 24


def test_an_empty_index_and_a_model_that_was_not_evaluated(visit, shown):
    page = visit(shown.empty, PHONE)
    page.get_by_text("The index is empty").wait_for()
    assert "adsh index add" in page.locator("#empty").inner_text()
    page.get_by_role("tab", name="How good is this model?").click()
    assert "adsh evaluate MODEL" in page.locator("#quality").inner_text()
    assert no_sideways(page)


def test_an_export_that_was_not_evaluated_says_how_to_get_the_figures(visit, shown):
    page = visit(shown.empty)
    info = {**page.evaluate("fetch('v1/info').then((answer) => answer.json())"), "runtime": "onnx"}
    page.route("**/v1/info", lambda route: route.fulfill(status=200, body=json.dumps(info)))
    page.reload()
    page.get_by_role("tab", name="How good is this model?").click()
    said = page.locator("#quality").inner_text()
    assert "adsh evaluate MODEL\nadsh export MODEL --out NEW" in said
    assert "serve the new one" in said
    assert "start the service again" not in said


STALLED = """
const ask = window.fetch;
let searches = 0;
window.fetch = (path, options) => {
  if (path !== "v1/search" || searches++) return ask(path, options);
  const json = () => new Promise((_, refuse) => options.signal.addEventListener("abort", () =>
    refuse(new DOMException("given up", "AbortError"))));
  return Promise.resolve({ ok: false, status: 422, headers: new Headers(), json });
};
"""


def test_an_error_that_was_given_up_does_not_speak_over_a_newer_search(visit, shown, image_file):
    page = visit(shown.url)
    page.add_init_script(STALLED)  # the body of the first answer never comes whole
    page.reload()
    page.wait_for_selector(".card")
    page.set_input_files("#file", image_file)
    page.wait_for_selector(".skeleton")
    page.set_input_files("#file", shown.photos / "square" / "1 é#1.png")
    assert found(page).count() == 24
    page.wait_for_timeout(100)
    assert page.locator("#notice").is_hidden()
    assert page.locator(".card .distance").count() == 24


def test_the_token_works_where_site_data_is_blocked(visit, shown):
    page = visit(shown.guarded, ready="dialog[open]")
    blocked = (
        "Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('', 'SecurityError'); } })"
    )
    page.add_init_script(blocked)
    page.reload()
    for text, ready in (("guess", "text=not the token of this service"), (TOKEN, ".card")):
        page.get_by_label("Token", exact=True).fill(text)
        page.get_by_role("button", name="Continue").click()
        page.wait_for_selector(ready)
    page.locator(".card").first.click()
    assert found(page).count() == 24


def test_the_figures_of_the_evaluation(visit, shown):
    page = visit(shown.url, PHONE)
    page.get_by_role("tab", name="Search").focus()
    page.keyboard.press("ArrowRight")
    report = json.loads((shown.model / "report" / "report.json").read_text())
    columns = report["evaluations"][0]["columns"] if "evaluations" in report else report[0]["columns"]
    shown_figures = page.locator(".big b").all_text_contents()
    assert shown_figures == [f"{column['map_expected']:.3f}" for column in columns.values()]
    assert page.locator("figure svg[role=img]").count() == 2
    assert no_sideways(page)
    page.get_by_text("The figures as a table").click()
    assert no_sideways(page)
    assert page.locator("tbody tr").count() >= 4


def test_classes_are_what_the_index_holds(visit, shown):
    page = visit(shown.url)
    assert page.locator(".chip").all_inner_texts() == sorted(SHAPES)
