"""Small images for the tests of sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def random_images(n: int, height: int = 32, width: int = 32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size=(n, height, width, 3), dtype=np.uint8)


def save(path: Path, pixels: np.ndarray, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path
