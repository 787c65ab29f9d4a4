"""A small world that the pages' commands are run in: images of two classes, and a model of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from .blocks import adsh

COLOURS = {"cat": (200, 120, 60), "dog": (60, 110, 190)}
EACH = 6


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> Path:
    """photos/, new-photos/, lists of them, some query images, and photos-48bits/ with its index."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(0)

    def save_image(name: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.clip(np.array(COLOURS[name]) + rng.normal(0, 40, size=(40, 36, 3)), 0, 255)
        Image.fromarray(pixels.astype(np.uint8)).save(path)

    for name in COLOURS:
        for number in range(1, EACH + 1):
            save_image(name, folder / "photos" / name / f"{number:03}.jpg")
        for number in (101, 102):
            save_image(name, folder / "new-photos" / name / f"{number}.jpg")
    for query in ("cat.jpg", "a.jpg", "b.jpg"):
        save_image("cat", folder / query)
    keys = [f"{name}/{number:03}.jpg" for name in COLOURS for number in range(1, EACH + 1)]
    rows = [f"photos/{key},{key[:3]},{2010 + at}" for at, key in enumerate(keys)]
    (folder / "photos.csv").write_text("\n".join(["path,label,year", *rows]) + "\n", encoding="utf-8")
    tags = [f"photos/{key},{key[:3]}|{'indoor' if at % 2 else 'outdoor'}" for at, key in enumerate(keys)]
    tags[-1] = f"photos/{keys[-1]},"  # not labelled
    (folder / "tagged.csv").write_text("\n".join(["path,labels", *tags]) + "\n", encoding="utf-8")

    here = Path.cwd()
    os.chdir(folder)
    try:
        assert adsh(["train", "photos", "--network", "tiny", "--outer", "3", "--size", "32", "--no-report"]) == 0
    finally:
        os.chdir(here)
    return folder


@pytest.fixture
def in_world(world, tmp_path, monkeypatch, no_figures) -> Path:
    """A copy of the world, as the present folder."""
    folder = tmp_path / "world"
    shutil.copytree(world, folder)
    monkeypatch.chdir(folder)
    return folder
