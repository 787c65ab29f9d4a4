"""Random colours for training: brightness, contrast, saturation and hue, each image its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import Generator, Tensor

from ...errors import InputError
from ..augment import Augmentation

_GREY = (0.299, 0.587, 0.114)


class ColourJitter(Augmentation):
    """Brightness, contrast and saturation times a factor in 1 - x .. 1 + x, hue turned by up to `hue` of a circle.

    In this order, always: a random order would need a step for each image. Images are floats in 0 .. 1, RGB.
    """

    def __init__(
        self, brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0, hue: float = 0.0
    ) -> None:
        if min(brightness, contrast, saturation) < 0 or not 0 <= hue <= 0.5:
            raise InputError(
                f"brightness={brightness}, contrast={contrast}, saturation={saturation}, hue={hue}: "
                "give 0 or more, hue up to 0.5"
            )
        self.strengths, self.hue = (brightness, contrast, saturation), hue

    def draw(self, count: int, height: int, width: int, generator: Generator) -> Tensor:
        """(count, 4) three factors, and the turn of the hue."""
        ranges = [*((max(0.0, 1 - s), 1 + s) for s in self.strengths), (-self.hue, self.hue)]
        drawn = torch.rand((4, count), generator=generator, device=generator.device)
        return torch.stack([low + at * (high - low) for at, (low, high) in zip(drawn, ranges, strict=True)], dim=1)

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """Each image in its own colours."""
        if not images.is_floating_point() or images.shape[1] != 3:
            raise InputError(
                f"images have type {images.dtype} and {images.shape[1]} channels: give RGB in 0 .. 1, float"
            )
        bright, contrast, colour, turn = parameters.to(images.dtype).view(-1, 4, 1, 1, 1).unbind(dim=1)
        brightness, contrasts, saturation = self.strengths
        if brightness:
            images = (images * bright).clamp(0, 1)
        if contrasts:
            mean = _grey(images).mean(dim=(2, 3), keepdim=True)
            images = torch.lerp(mean, images, contrast).clamp(0, 1)
        if saturation:
            images = torch.lerp(_grey(images), images, colour).clamp(0, 1)
        return _turned(images, turn[:, 0]) if self.hue else images

    def apply_one(self, picture: Image.Image, parameters: Sequence[Any]) -> Image.Image:
        """The same for a picture, in steps of its 8 bits."""
        bright, contrast, colour, turn = parameters
        if self.strengths[0]:
            picture = ImageEnhance.Brightness(picture).enhance(bright)
        if self.strengths[1]:
            picture = ImageEnhance.Contrast(picture).enhance(contrast)
        if self.strengths[2]:
            picture = ImageEnhance.Color(picture).enhance(colour)
        if self.hue:
            hue, saturation, value = picture.convert("HSV").split()
            turned = Image.fromarray(np.asarray(hue) + np.uint8(round(turn * 255) % 256))  # wraps around
            picture = Image.merge("HSV", (turned, saturation, value)).convert("RGB")
        return picture


def _grey(images: Tensor) -> Tensor:
    """(n, 1, H, W) the luminance."""
    red, green, blue = images.unbind(dim=1)
    return (_GREY[0] * red + _GREY[1] * green + _GREY[2] * blue)[:, None]


def _turned(images: Tensor, turn: Tensor) -> Tensor:
    """The hue, of hue, saturation and value, turned by a share of the circle."""
    red, green, blue = images.unbind(dim=1)
    value, least = images.amax(dim=1), images.amin(dim=1)
    chroma = value - least
    safe = torch.where(chroma > 0, chroma, 1)
    sextant = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    sextant = sextant + 6 * turn
    channels = []
    for offset in (5, 3, 1):  # red, green, blue
        k = (sextant + offset) % 6
        channels.append(value - chroma * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, dim=1)
