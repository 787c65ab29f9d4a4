"""All images of a dataset resized to one size, as a view; networks take images of one shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...errors import InputError
from ..dataset import Dataset
from .decode import MOST_PIXELS, Pixels


class ResizedDataset(Dataset):
    """The images of another dataset, each (size, size, 3), resized by Pillow's bilinear filter with antialiasing.

    Args:
        dataset: images of any sizes.
        size: the side of the resized images.
        how: "crop": the shorter side becomes `resize`, and the center is cut out. "squash": both sides become `size`,
            and the aspect is not kept.
        resize: the shorter side before the crop; `size` unless given (256 before 224 is the usual pair).
    """

    def __init__(self, dataset: Dataset, size: int, how: str = "crop", resize: int | None = None) -> None:
        if how not in ("crop", "squash"):
            raise InputError(f'how={how!r}: choose "crop" or "squash"')
        if size < 1 or (resize is not None and resize < size):
            raise InputError(f"size={size} and resize={resize}: give a size of 1 or more, and resize no smaller")
        self.whole, self.size, self.how, self.resize = dataset, size, how, resize or size
        self.image_size = size
        self.name, self.labels, self.classes = dataset.name, dataset.labels, dataset.classes
        self.keys, self.test_from, self.workers = dataset.keys, dataset.test_from, dataset.workers

    def __getitem__(self, index: int) -> Pixels:
        return self.resized(self.whole[index])

    def __getitems__(self, indices: Sequence[int]) -> Pixels:
        images = np.empty((len(indices), self.size, self.size, 3), dtype=np.uint8)
        for at, image in enumerate(self.whole.__getitems__(indices)):
            images[at] = self.resized(image)
        return images

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the file size of each item, where items are files."""
        return self.whole.file_sizes(indices)

    def locate(self, index: int) -> tuple[Dataset, int]:
        """Return the dataset behind this view that reads the item, and the item's index there."""
        return self.whole.locate(index)

    def resized(self, image: NDArray[Any]) -> Pixels:
        """Return an image at the size of this dataset."""
        return resize_image(image, self.size, self.how, self.resize, self.name)

    fitted = resized  # its earlier name


Sized = ResizedDataset  # the earlier name, which stays importable


def resize_image(
    image: NDArray[Any],
    size: int,
    how: str = "crop",
    resize: int | None = None,
    name: str = "the queries",
    *,
    most: int = MOST_PIXELS,
) -> Pixels:
    """Return one image at (size, size, 3), as `ResizedDataset` resizes it.

    Args:
        image: (H, W, 3) uint8.
        size, how, resize: as of `ResizedDataset`.
        name: what errors call the source of the image.
        most: the pixels that it may have before the crop.

    Returns:
        uint8 array (size, size, 3).

    Raises:
        InputError: this is no image, or one so long that it would have more than `most` pixels before the crop.
    """
    resize = resize or size
    if image.ndim != 3 or image.dtype != np.uint8 or image.shape[2] != 3:
        raise InputError(f"{name} has items of shape {image.shape}: only images have a size to change")
    height, width = image.shape[:2]
    if how == "crop" and too_long((width, height), resize, most):
        raise InputError(
            f"an image of {name} has {height:,} x {width:,} pixels, too long to be cropped to {size} x "
            f'{size}: crop it yourself, or pass how="squash"'
        )
    if how == "squash":
        return _resized(image, size, size)
    return center_crop(resize_shorter_side(image, resize), size)


def resize_rgb(image: Image.Image, size: int) -> Image.Image:
    """Return a Pillow image of mode RGB at (size, size), the same pixels as `resize_image` gives."""
    height, width = _shorter_side_to(size, image.height, image.width)
    if image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    top, left = _center(height, size), _center(width, size)
    return image.crop((left, top, left + size, top + size))


def too_long(size: tuple[int, int], resize: int, most: int = MOST_PIXELS) -> bool:
    """Whether an image has more than `most` pixels once its shorter side is resized.

    Args:
        size: width and height of the image.
        resize: the length of the shorter side after resizing.
        most: the pixels that the resized image may have.

    Returns:
        True if it has more.
    """
    return resize**2 * max(size) > most * min(size)


def resize_shorter_side(image: Pixels, size: int) -> Pixels:
    """Return the image with its shorter side of this length and its aspect kept, as torchvision's Resize(size)."""
    return _resized(image, *_shorter_side_to(size, *image.shape[:2]))


def _shorter_side_to(size: int, height: int, width: int) -> tuple[int, int]:
    """Return the height and width of an image once its shorter side has this length.

    Args:
        size: the new length of the shorter side.
        height, width: the old ones.
    """
    return (size, size * width // height) if height <= width else (size * height // width, size)


def _resized(image: Pixels, height: int, width: int) -> Pixels:
    """Return the image at this height and width; the same array where it has them already.

    Args:
        image: (H, W, 3).
        height, width: the new ones.

    Returns:
        uint8 array (height, width, 3).
    """
    if image.shape[:2] == (height, width):
        return image
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))


def center_crop(image: Pixels, size: int) -> Pixels:
    """Return the middle (size, size) of an image that is no smaller, as torchvision's CenterCrop(size)."""
    top, left = (_center(side, size) for side in image.shape[:2])
    return image[top : top + size, left : left + size]


def _center(side: int, size: int) -> int:
    """Return where the middle `size` of a side starts."""
    return round((side - size) / 2)
