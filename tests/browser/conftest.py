"""A real Chromium, and real servers of a model of coloured shapes."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

import adsh

from .. import forked
from ..serve.conftest import Process

SERVING = ("fastapi", "uvicorn", "python_multipart", "orjson", "prometheus_client")
TOKEN = "s3cret"
SHAPES = {"circle": (214, 69, 65), "square": (38, 120, 178), "triangle": (232, 178, 48)}
READY = "body:has(#results:not([aria-busy]))"
DESKTOP, PHONE, SMALL = (1280, 900), (390, 844), (360, 640)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]


def _chromium() -> str | None:
    return shutil.which(os.environ.get("CHROMIUM", "chromium")) or shutil.which("google-chrome")


def _missing() -> str | None:
    modules = [name for name in (*SERVING, "playwright", "axe_playwright_python") if find_spec(name) is None]
    if modules:
        return f"{modules[0]} is missing: pip install -c constraints.txt -e '.[dev]'"
    return None if _chromium() else "chromium is missing: apt-get install chromium, or set CHROMIUM"


def pytest_collection_modifyitems(items):
    reason = _missing()
    if reason and os.environ.get("ADSH_REQUIRE_BROWSER") != "1":  # with it, the fixtures fail
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="package")  # its event loop must be gone when other tests run theirs
def browser() -> Iterator[Any]:
    reason = _missing()
    assert reason is None, reason
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=_chromium(), args=FLAGS)
        yield chromium
        chromium.close()


def draw(kind: str, rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGB", (64, 64), tuple(int(c) for c in rng.integers(215, 250, 3)))
    pen = ImageDraw.Draw(image)
    left, top = (int(v) for v in rng.integers(6, 16, 2))
    right, bottom = left + int(rng.integers(30, 42)), top + int(rng.integers(30, 42))
    colour = tuple(int(np.clip(c + rng.integers(-20, 20), 0, 255)) for c in SHAPES[kind])
    if kind == "circle":
        pen.ellipse((left, top, right, bottom), fill=colour)
    elif kind == "square":
        pen.rectangle((left, top, right, bottom), fill=colour)
    else:
        pen.polygon([(left, bottom), (right, bottom), ((left + right) // 2, top)], fill=colour)
    return image


@dataclass(frozen=True)
class Shown:
    """Where things are served."""

    url: str  # images shown, no token
    guarded: str  # the same, behind TOKEN
    empty: str  # an index without items, a model that was not evaluated
    bare: str  # without --images
    elsewhere: str  # with an --images that holds none of the items
    photos: Path
    model: Path


@pytest.fixture(scope="package")
def shown(tmp_path_factory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("shown")
    photos, model, bare = folder / "photos", folder / "model", folder / "bare"
    rng = np.random.default_rng(0)
    for kind in SHAPES:
        (photos / kind).mkdir(parents=True)
        for number in range(14):
            draw(kind, rng).save(photos / kind / f"{number} é#1.png")
    train = ["train", photos, "--network", "tiny", "--bits", "24", "--size", "32", "--out", model]
    forked.run([sys.executable, "-m", "adsh", *map(str, train)], check=True, capture_output=True)
    shutil.copytree(model, bare, ignore=shutil.ignore_patterns("report", "index"))
    adsh.open_index(folder / "empty", bits=24, model=bare).close()
    (folder / "report").mkdir()
    starts: list[tuple[Any, ...]] = [
        (model, model / "index", "--images", photos),
        (model, model / "index", "--images", photos, "--token", TOKEN),
        (bare, folder / "empty"),
        (model, model / "index"),
        (model, model / "index", "--images", folder / "report"),
    ]
    with ThreadPoolExecutor() as pool:
        servers = list(pool.map(lambda at: Process(*starts[at], log=folder / f"log{at}.jsonl"), range(len(starts))))
    yield Shown(*(server.url for server in servers), photos=photos, model=model)
    for server in servers:
        assert server.end() == 0


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Any]]:
    """visit(url, size=…, dark=…, touch=…) opens a page of its own; at the end nothing of it may have gone wrong."""
    contexts, problems = [], []

    def opened(
        url: str,
        size: tuple[int, int] = DESKTOP,
        *,
        dark: bool = False,
        touch: bool = False,
        ready: str = READY,
    ):
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            has_touch=touch,
            is_mobile=touch,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if "Security Policy" in said.text else None)
        page.on(
            "request", lambda request: None if _own(request.url, url) else problems.append(f"requested {request.url}")
        )
        page.goto(url)
        page.wait_for_selector(ready)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def until(page: Any, so: str | Callable[[], Any], argument: Any = None) -> None:
    """Waits for it to be true. (Playwright's own waits by `eval`, which the page's policy forbids.)"""
    end = time.monotonic() + 15
    while not (so() if callable(so) else page.evaluate(so, argument)):
        assert time.monotonic() < end, f"still not so: {so}"
        page.wait_for_timeout(20)


def _own(requested_url: str, url: str) -> bool:
    return requested_url.startswith((url.partition("#")[0], "blob:", "data:"))
