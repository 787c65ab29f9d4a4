"""Numbers for a network's tensors that are the same on any machine, from their names: NumPy alone."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Iterable

import numpy as np

BITS = 16
SIZES = ((2, 96, 80), (1, 75, 69))  # images, height, width: even and odd sides, and a mixture of them inside


def numbers(name: str, shape: Iterable[int]) -> np.ndarray:
    """float32 values for the tensor of this name, of a size that keeps activations alive through many layers."""
    shape = tuple(shape)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    values = rng.random(shape, dtype=np.float32)
    if len(shape) > 1:
        return (2 * values - 1) * np.float32(math.sqrt(6 / math.prod(shape[1:])))
    if name.endswith(("running_var", "weight")):  # of a norm
        return values + np.float32(0.5)
    return (values - np.float32(0.5)) * np.float32(0.2)


def images(number: int) -> np.ndarray:
    """(n, 3, H, W) float32 in 0 .. 1."""
    n, height, width = SIZES[number]
    return np.random.default_rng([7, number]).random((n, 3, height, width), dtype=np.float32)


def names_digest(shapes: dict[str, tuple[int, ...]]) -> str:
    """One string for all names and shapes, to compare two networks' layouts."""
    lines = sorted(f"{name} {tuple(shape)}" for name, shape in shapes.items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def sample_image(height: int, width: int, channels: int) -> np.ndarray:
    """(H, W, channels) uint8: waves and noise."""
    rng = np.random.default_rng([height, width, channels])
    y, x = np.mgrid[:height, :width]
    waves = [127 + 90 * np.sin(x / (3 + c) + y / (5 - c)) for c in range(channels)]
    return np.clip(np.stack(waves, axis=-1) + rng.normal(0, 25, (height, width, channels)), 0, 255).astype(np.uint8)


# transforms: name -> (height, width, channels of the image; steps). A step is a class's name and its argument.
TRANSFORMS: dict[str, tuple[tuple[int, int, int], list[tuple[str, int]]]] = {
    "shrink": ((97, 131, 3), [("Resize", 64)]),
    "enlarge": ((43, 57, 3), [("Resize", 101)]),
    "tall": ((131, 97, 3), [("Resize", 48)]),
    "crop odd from even": ((64, 98, 3), [("CenterCrop", 33)]),
    "crop even from odd": ((63, 97, 3), [("CenterCrop", 32)]),
    "usual": ((97, 131, 3), [("Resize", 72), ("CenterCrop", 64)]),
}
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
