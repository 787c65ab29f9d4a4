"""Generated data of the runs: tiny, and from a generator whose stream NumPy keeps (integers and sums of them)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

COLOURS = {"red": (200, 40, 40), "green": (40, 180, 60), "blue": (50, 60, 200)}


def blobs(count: int = 90, classes: int = 3, width: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, width) around a centre a class, in whole sixteenths, and their labels."""
    rng = np.random.RandomState(seed)  # its stream never changes
    centres = rng.randint(-96, 97, size=(classes, width))
    labels = np.arange(count) % classes
    spread = rng.randint(-32, 33, size=(count, width))
    return ((centres[labels] + spread) / 16).astype(np.float32), labels


def multi_hot(count: int = 90, width: int = 8, tags: int = 5, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Features and several labels a point, at least one."""
    rng = np.random.RandomState(seed)  # its stream never changes
    hot = rng.randint(0, 4, size=(count, tags)) == 0
    hot[np.arange(count), rng.randint(0, tags, size=count)] = True
    centres = rng.randint(-64, 65, size=(tags, width))
    return ((hot @ centres + rng.randint(-16, 17, size=(count, width))) / 16).astype(np.float32), hot.astype(np.int64)


def labelled_images(count: int = 24, side: int = 12, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, side, side, 3) of a colour a class, and their labels."""
    rng = np.random.RandomState(seed)  # its stream never changes
    labels = np.arange(count) % len(COLOURS)
    colours = np.array(list(COLOURS.values()))[labels][:, None, None, :]
    return np.clip(colours + rng.randint(-40, 41, size=(count, side, side, 3)), 0, 255).astype(np.uint8), labels


def write_sources(here: Path) -> None:
    """blobs.npz, tags.npz and the folder photos/, for the command line."""
    features, labels = blobs()
    np.savez(here / "blobs.npz", features=features, labels=labels)
    features, hot = multi_hot()
    np.savez(here / "tags.npz", features=features, labels=hot)
    images, labels = labelled_images(30, side=20)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        folder = here / "photos" / list(COLOURS)[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number:02}.png")
