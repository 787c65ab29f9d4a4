"""All images of a dataset at one size, as a view: what a network that wants one shape takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...errors import InputError
from ..dataset import Dataset
from .decode import MOST_PIXELS, Pixels


class Sized(Dataset):
    """The images of `dataset`, each (size, size, 3), resized by Pillow's bilinear filter with antialiasing.

    how       "crop": the shorter side becomes `resize` and the centre is cut out; "squash": both sides become
              `size`, and the shape of things is not kept
    resize    the shorter side before the cut; `size` unless given (256 before 224 is the usual pair)
    """

    def __init__(self, dataset: Dataset, size: int, how: str = "crop", resize: int | None = None) -> None:
        if how not in ("crop", "squash"):
            raise InputError(f'how={how!r}: choose "crop" or "squash"')
        if size < 1 or (resize is not None and resize < size):
            raise InputError(f"size={size} and resize={resize}: give a size of 1 or more, and resize no smaller")
        self.whole, self.size, self.how, self.resize = dataset, size, how, resize or size
        self.name, self.labels, self.classes = dataset.name, dataset.labels, dataset.classes
        self.keys, self.test_from, self.workers = dataset.keys, dataset.test_from, dataset.workers

    def __getitem__(self, index: int) -> Pixels:
        return self.fitted(self.whole[index])

    def __getitems__(self, indices: Sequence[int]) -> Pixels:
        images = np.empty((len(indices), self.size, self.size, 3), dtype=np.uint8)
        for at, image in enumerate(self.whole.__getitems__(indices)):
            images[at] = self.fitted(image)
        return images

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """How long the file of each item is, where items are files."""
        return self.whole.file_sizes(indices)

    def fitted(self, image: NDArray[Any]) -> Pixels:
        """An image brought to the size."""
        return fit(image, self.size, self.how, self.resize, self.name)


def fit(
    image: NDArray[Any],
    size: int,
    how: str = "crop",
    resize: int | None = None,
    name: str = "the queries",
    *,
    most: int = MOST_PIXELS,
) -> Pixels:
    """One image brought to (size, size, 3), as `Sized` has it; `name` is what errors call its source.

    An image so long that more than `most` pixels were left before the cut is refused.
    """
    resize = resize or size
    if image.ndim != 3 or image.dtype != np.uint8 or image.shape[2] != 3:
        raise InputError(f"{name} has items of shape {image.shape}: only images have a size to change")
    height, width = image.shape[:2]
    if how == "crop" and too_long((width, height), resize, most):
        raise InputError(
            f"an image of {name} has {height:,} x {width:,} pixels, too long to be cut to {size} x "
            f'{size}: crop it, or take how="squash"'
        )
    if how == "squash":
        return resized(image, size, size)
    return centre(shorter_side(image, resize), size)


def too_long(size: tuple[int, int], resize: int, most: int = MOST_PIXELS) -> bool:
    """Whether more than `most` pixels are left of a picture whose shorter side is brought to this length."""
    return resize**2 * max(size) > most * min(size)


def shorter_side(image: Pixels, size: int) -> Pixels:
    """The image with its shorter side of this length and its shape kept, as torchvision's Resize(size)."""
    height, width = image.shape[:2]
    if height <= width:
        return resized(image, size, size * width // height)
    return resized(image, size * height // width, size)


def resized(image: Pixels, height: int, width: int) -> Pixels:
    """The image at this height and width; the same array where it has them already."""
    if image.shape[:2] == (height, width):
        return image
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))


def centre(image: Pixels, size: int) -> Pixels:
    """The middle (size, size) of an image that is no smaller, as torchvision's CenterCrop(size)."""
    top, left = (round((side - size) / 2) for side in image.shape[:2])
    return image[top : top + size, left : left + size]
