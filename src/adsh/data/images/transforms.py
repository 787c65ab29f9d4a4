"""From a picture to what a network sees, one image at a time: Resize, CenterCrop, ToTensor, Normalize.

With Pillow and torch alone, equal to torchvision's on Pillow images bit for bit. For the random changes of
training see `augment.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from ...errors import InputError

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


class Compose:
    """One step after the other."""

    def __init__(self, steps: Sequence[Callable[[Any], Any]]) -> None:
        self.steps = list(steps)

    def __call__(self, image: Any) -> Any:
        """What the last step gives."""
        for step in self.steps:
            image = step(image)
        return image


class Resize:
    """The shorter side at `size`, the aspect kept; or (height, width), whatever the aspect was."""

    def __init__(self, size: int | Sequence[int], interpolation: str = "bilinear") -> None:
        if interpolation not in _FILTERS:
            raise InputError(f"interpolation={interpolation!r}: choose one of {', '.join(_FILTERS)}")
        self.size = size if isinstance(size, int) else _two_sides(size)
        if isinstance(size, int):
            _two_sides((size, size))
        self.filter = _FILTERS[interpolation]

    def __call__(self, image: Image.Image) -> Image.Image:
        """The picture at its new size."""
        width, height = image.size
        if isinstance(self.size, tuple):
            wanted = (self.size[1], self.size[0])
        elif width <= height:
            wanted = (self.size, int(self.size * height / width))
        else:
            wanted = (int(self.size * width / height), self.size)
        return image if wanted == image.size else image.resize(wanted, self.filter)


class CenterCrop:
    """The middle of a picture, `size` or (height, width); a smaller picture is put on black."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self.height, self.width = _two_sides((size, size) if isinstance(size, int) else size)

    def __call__(self, image: Image.Image) -> Image.Image:
        """The picture cropped."""
        width, height = image.size
        across, down = max(self.width - width, 0), max(self.height - height, 0)
        if across or down:
            border = (across // 2, down // 2, (across + 1) // 2, (down + 1) // 2)
            image = ImageOps.expand(image, border, fill=0)
            width, height = image.size
        top, left = round((height - self.height) / 2), round((width - self.width) / 2)  # halves to the even side
        return image.crop((left, top, left + self.width, top + self.height))


class ToTensor:
    """(channels, H, W) float32 in 0 .. 1, from a picture of 8 bits a channel or a uint8 (H, W, channels) array."""

    def __call__(self, image: Image.Image | np.ndarray[Any, Any]) -> Tensor:
        """The image as a tensor."""
        pixels = np.array(image)  # a copy: torch wants it writable
        if pixels.ndim == 2:
            pixels = pixels[..., None]
        if pixels.dtype == np.bool_:
            pixels = pixels.astype(np.uint8) * 255
        if pixels.dtype != np.uint8 or pixels.ndim != 3:
            raise InputError(
                f"an image has type {pixels.dtype} and shape {pixels.shape}: convert it to 8 bits a channel, "
                'image.convert("RGB")'
            )
        return torch.from_numpy(pixels).permute(2, 0, 1).contiguous().to(torch.float32).div(255)


class Normalize:
    """(x - mean) / std, channel by channel."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        if len(mean) != len(std) or not all(value > 0 for value in std):
            raise InputError(f"mean={list(mean)}, std={list(std)}: give one of each a channel, std above 0")
        self.mean, self.std = tuple(mean), tuple(std)

    def __call__(self, image: Tensor) -> Tensor:
        """A new tensor, (…, channels, H, W) as given."""
        if image.ndim < 3 or image.shape[-3] != len(self.mean):
            raise InputError(
                f"an image has shape {tuple(image.shape)}, but mean and std are for {len(self.mean)} channels: "
                f"give ({len(self.mean)}, H, W)"
            )
        mean = torch.tensor(self.mean, dtype=image.dtype, device=image.device).view(-1, 1, 1)
        std = torch.tensor(self.std, dtype=image.dtype, device=image.device).view(-1, 1, 1)
        return (image - mean).div_(std)


def _two_sides(size: Sequence[int]) -> tuple[int, int]:
    sides = tuple(size)
    if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
        raise InputError(f"size={size!r}: give a whole number of pixels, or (height, width)")
    return sides[0], sides[1]
