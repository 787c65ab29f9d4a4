"""Create docs/images/serve-*.png: draw images, train, index, serve, take screenshots.

`make screenshots` runs it; it takes less than a minute, and needs Chromium.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter
from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).parent
SIDE, FINER = 256, 2  # pixels of an image, and how much larger it is drawn
LEARNED, NEW = 60, 36  # images of each kind: those the model is trained on, and those in the index
Colour = tuple[int, ...]
Rng = np.random.Generator


def main() -> None:
    """Take both screenshots."""
    images = HERE / "images"
    images.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        draw_all(folder)
        adsh("train", folder / "learned", "--bits", 48, "--network", "tiny", "--outer", 12, "--out", folder / "model")
        adsh("index", "add", folder / "index", folder / "new", "--model", folder / "model")
        with serving(folder) as url, sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=shutil.which(os.environ.get("CHROMIUM", "chromium")), args=["--no-sandbox"]
            )
            query = folder / "garden.png"
            shoot(browser, url, query, images / "serve-desktop.png", (1280, 822))
            shoot(browser, url, query, images / "serve-phone.png", (390, 844), phone=True)
            browser.close()


def shoot(browser: Browser, url: str, query: Path, to: Path, size: tuple[int, int], *, phone: bool = False) -> None:
    """Take a screenshot of the page after a search; that of a phone is dark."""
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if phone else "light",
        has_touch=phone,
        is_mobile=phone,
        reduced_motion="reduce",
    )
    page.goto(url)
    page.wait_for_selector(".card")
    page.set_input_files("#file", query)
    page.wait_for_selector(".card .distance")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=to)
    page.close()
    with Image.open(to) as shot:
        shot.convert("RGB").save(to, optimize=True)
    print(f"{to.relative_to(HERE.parent)}: {to.stat().st_size // 1024} KiB")


def adsh(*arguments: object) -> None:
    """Runs the command."""
    subprocess.run([sys.executable, "-m", "adsh", *map(str, arguments)], check=True)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The service's address, while it runs."""
    command = ["serve", folder / "model", folder / "index", "--images", folder / "new", "--port", 0, "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "adsh", *map(str, command), "--no-log"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while lines[-1] and not lines[-1].startswith("}"):
            lines.append(process.stdout.readline())
        try:
            yield json.loads("".join(lines))["url"]
        finally:
            process.terminate()


def draw_all(folder: Path) -> None:
    """Create folders of images with one sub-folder per kind, and a query image."""
    rng = np.random.default_rng(7)
    for part, number in (("learned", LEARNED), ("new", NEW)):
        for kind, draw in KINDS.items():
            (folder / part / kind).mkdir(parents=True)
            for at in range(number):
                draw_image(draw, rng).save(folder / part / kind / f"{at + 1:03}.png")
    draw_image(flower, rng).save(folder / "garden.png")


def draw_image(draw: Callable[[Image.Image, Rng], Image.Image], rng: Rng) -> Image.Image:
    """Drawn large and made smaller, for soft edges."""
    canvas = Image.new("RGB", (SIDE * FINER, SIDE * FINER))
    return draw(canvas, rng).resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def flower(canvas: Image.Image, rng: Rng) -> Image.Image:
    """Petals round a heart, before something green and out of focus."""
    size = canvas.width
    gradient(canvas, tinted(rng, (150, 190, 120)), tinted(rng, (70, 120, 80)))
    for _ in range(14):
        blob(canvas, rng, tinted(rng, (120, 170, 100), 40), size * rng.uniform(0.05, 0.18))
    canvas = canvas.filter(ImageFilter.GaussianBlur(size / 28))
    petal = tinted(rng, COLOURS[rng.integers(len(COLOURS))], 18)
    petals, long, wide = int(rng.integers(6, 14)), size * rng.uniform(0.26, 0.36), rng.uniform(0.20, 0.34)
    x, y = size * rng.uniform(0.42, 0.58, 2)
    pen, turn = ImageDraw.Draw(canvas), rng.uniform(0, math.tau)
    for ring, shade in ((1.0, 0.86), (0.8, 1.0)):
        for at in range(petals):
            angle = turn + (at + (ring < 1) / 2) * math.tau / petals
            outline = []
            for step in np.linspace(0, math.tau, 40):
                along, across = long * ring * (1 + math.cos(step)) / 2, long * wide * math.sin(step)
                outline.append(
                    (
                        x + along * math.cos(angle) - across * math.sin(angle),
                        y + along * math.sin(angle) + across * math.cos(angle),
                    )
                )
            pen.polygon(outline, fill=scaled(petal, shade), outline=scaled(petal, shade * 0.88), width=3)
    heart = size * rng.uniform(0.06, 0.10)
    pen.ellipse((x - heart, y - heart, x + heart, y + heart), fill=tinted(rng, (236, 186, 60), 15))
    return canvas


def mountain(canvas: Image.Image, rng: Rng) -> Image.Image:
    """Ridges behind ridges, under a low sun."""
    size = canvas.width
    sky, ridge = [((250, 208, 160), (52, 58, 100)), ((205, 226, 240), (40, 78, 96)), ((246, 190, 190), (78, 54, 96))][
        rng.integers(3)
    ]
    gradient(canvas, tinted(rng, scaled(sky, 0.82)), tinted(rng, sky))
    pen, sun = ImageDraw.Draw(canvas), size * rng.uniform(0.05, 0.1)
    x, y = size * rng.uniform(0.2, 0.8), size * rng.uniform(0.15, 0.4)
    pen.ellipse((x - sun, y - sun, x + sun, y + sun), fill=(255, 246, 224))
    for layer in range(4):
        base, steps = size * (0.42 + 0.15 * layer), 2 ** (layer + 3)
        points = np.interp(np.arange(size), np.linspace(0, size, steps), base + rng.normal(0, size * 0.07, steps))
        mix = (layer + 1) / 4
        colour = tuple(round(a * (1 - mix) * 0.9 + b * mix) for a, b in zip(sky, ridge, strict=True))
        pen.polygon([(0, size), *enumerate(points.tolist()), (size, size)], fill=colour)
    return canvas


def planet(canvas: Image.Image, rng: Rng) -> Image.Image:
    """A ball of bands, lit from one side, among stars."""
    size = canvas.width
    gradient(canvas, (8, 10, 28), tinted(rng, (26, 22, 58), 10))
    pen = ImageDraw.Draw(canvas)
    for _ in range(70):
        x, y, r = *(size * rng.random(2)), rng.uniform(0.8, 2.6)
        pen.ellipse((x - r, y - r, x + r, y + r), fill=(int(rng.integers(150, 255)),) * 3)
    ball, tilt = size * rng.uniform(0.2, 0.34), rng.uniform(-0.5, 0.5)
    cx, cy = size * rng.uniform(0.38, 0.62, 2)
    ys, xs = np.mgrid[0:size, 0:size]
    dx, dy = (xs - cx) / ball, (ys - cy) / ball
    inside, height = dx**2 + dy**2 < 1, np.sqrt(np.clip(1 - dx**2 - dy**2, 0, 1))
    bands = 0.5 + 0.5 * np.sin((dy * math.cos(tilt) + dx * math.sin(tilt)) * rng.uniform(5, 14) + rng.uniform(0, 6))
    light = np.clip(0.12 + 0.9 * (-0.6 * dx - 0.4 * dy + 0.7 * height), 0.06, 1.1)
    one, other = (np.array(tinted(rng, COLOURS[at], 25)) for at in rng.choice(len(COLOURS), 2, replace=False))
    pixels = np.array(canvas)
    surface = (bands[..., None] * one + (1 - bands[..., None]) * other) * light[..., None]
    pixels[inside] = np.clip(surface, 0, 255).astype(np.uint8)[inside]
    return Image.fromarray(pixels)


def tiles(canvas: Image.Image, rng: Rng) -> Image.Image:
    """Quarter circles, turned at random."""
    size, across = canvas.width, int(rng.integers(3, 6))
    ground, line = tinted(rng, (244, 236, 220), 8), tinted(rng, COLOURS[rng.integers(len(COLOURS))], 20)
    pen, cell = ImageDraw.Draw(canvas), size / across
    pen.rectangle((0, 0, size, size), fill=ground)
    for row in range(across):
        for column in range(across):
            x, y, flip = column * cell, row * cell, bool(rng.integers(2))
            corners = ((x, y, 0), (x + cell, y + cell, 180)) if flip else ((x + cell, y, 90), (x, y + cell, 270))
            for cx, cy, start in corners:
                for share, colour in ((0.68, line), (0.32, ground)):
                    r = cell * share
                    pen.pieslice((cx - r, cy - r, cx + r, cy + r), start, start + 90, fill=colour)
    return canvas


KINDS = {"flower": flower, "mountain": mountain, "planet": planet, "tiles": tiles}
COLOURS = [
    (222, 92, 110),
    (236, 140, 74),
    (240, 196, 88),
    (176, 112, 196),
    (92, 132, 214),
    (62, 158, 150),
    (240, 226, 232),
]


def tinted(rng: Rng, colour: Colour, by: int = 20) -> Colour:
    """Nearly that colour."""
    return tuple(int(np.clip(part + rng.integers(-by, by + 1), 0, 255)) for part in colour)


def scaled(colour: Colour, by: float) -> Colour:
    """Darker, or lighter."""
    return tuple(min(255, round(part * by)) for part in colour)


def blob(canvas: Image.Image, rng: Rng, colour: Colour, r: float) -> None:
    """A round spot somewhere."""
    x, y = canvas.width * rng.random(2)
    ImageDraw.Draw(canvas).ellipse((x - r, y - r, x + r, y + r), fill=colour)


def gradient(canvas: Image.Image, top: Colour, bottom: Colour) -> None:
    """From one colour above to another below."""
    rows = np.linspace(top, bottom, canvas.height)[:, None].repeat(canvas.width, axis=1)
    canvas.paste(Image.fromarray(rows.astype(np.uint8)))


if __name__ == "__main__":
    main()
