"""Random changes of images for training: shift, flip, random resized crop; colours are in `colour.py`.

Each change draws its parameters, one row an image, and applies them: to a whole batch (n, channels, H, W) on
whatever device it is, without a loop over the images and without waiting for the device; or to one Pillow picture
before it joins a batch. The same generator state gives the same parameters. A generator of the batch's own
device keeps everything there: torch.Generator(device=images.device).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Generator, Tensor

from ..config import Recipe
from ..errors import InputError

_TRIES = 10  # boxes drawn an image, of which the first that fits is taken

WHOLE = slice(None)

AnyImage = TypeVar("AnyImage", Tensor, Image.Image)


class Augmentation:
    """A random change: `draw` its parameters, then `apply` them to a batch or `apply_one` to a picture."""

    def draw(self, count: int, height: int, width: int, generator: Generator) -> Tensor:
        """(count, k) parameters for images of this size, on the generator's device."""
        raise NotImplementedError

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """The (n, channels, H, W) batch, each image changed by its own row of parameters."""
        raise NotImplementedError

    def apply_one(self, picture: Image.Image, parameters: Sequence[Any]) -> Image.Image:
        """A Pillow picture, changed by one row of parameters."""
        raise NotImplementedError

    def __call__(self, images: AnyImage, generator: Generator, share: slice = WHOLE, of: int | None = None) -> AnyImage:
        """A batch, a single (channels, H, W) image or a Pillow picture, changed at random.

        A batch that is the `share` of a larger one `of` so many images is changed as it would be within that.
        """
        if isinstance(images, Image.Image):
            drawn = self.draw(1, images.height, images.width, generator)
            return self.apply_one(images, drawn[0].tolist())
        if images.ndim not in (3, 4):
            raise InputError(f"images have shape {tuple(images.shape)}: give (n, channels, H, W)")
        batch = images if images.ndim == 4 else images[None]
        count = len(batch) if of is None else of
        drawn = self.draw(count, batch.shape[2], batch.shape[3], generator)[share]
        changed = self.apply(batch, drawn.to(batch.device, non_blocking=True))
        return changed if images.ndim == 4 else changed[0]


class Chain(Augmentation):
    """Several changes, one after the other."""

    def __init__(self, steps: Sequence[Augmentation]) -> None:
        self.steps = list(steps)

    def __call__(self, images: AnyImage, generator: Generator, share: slice = WHOLE, of: int | None = None) -> AnyImage:
        """All of them, each with its own draw."""
        for step in self.steps:
            images = step(images, generator, share, of)
        return images


class RandomShift(Augmentation):
    """Moved by up to `pixels` each way, the edge repeated: a random crop of the padded image. Exact, any type."""

    def __init__(self, pixels: int) -> None:
        if pixels < 0:
            raise InputError(f"pixels={pixels}: give a whole number of at least 0")
        self.pixels = pixels

    def draw(self, count: int, height: int, width: int, generator: Generator) -> Tensor:
        """(count, 2) down, right: where the crop starts, relative to the image."""
        reach = (-self.pixels, self.pixels + 1)
        return torch.randint(*reach, (count, 2), generator=generator, device=generator.device)

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """One gather; the channels of a pixel move together, and the batch comes out channels-last."""
        n, _, height, width = images.shape
        device = images.device
        rows = (torch.arange(height, device=device) + parameters[:, :1]).clamp_(0, height - 1)  # (n, H)
        columns = (torch.arange(width, device=device) + parameters[:, 1:]).clamp_(0, width - 1)  # (n, W)
        which = torch.arange(n, device=device)[:, None, None]
        return images.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)

    def apply_one(self, picture: Image.Image, parameters: Sequence[Any]) -> Image.Image:
        """The same for a picture."""
        rows = np.clip(np.arange(picture.height) + parameters[0], 0, picture.height - 1)
        columns = np.clip(np.arange(picture.width) + parameters[1], 0, picture.width - 1)
        return Image.fromarray(np.asarray(picture)[rows[:, None], columns])


class RandomFlip(Augmentation):
    """Mirrored left to right with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise InputError(f"p={p}: give a probability, 0 to 1")
        self.p = p

    def draw(self, count: int, height: int, width: int, generator: Generator) -> Tensor:
        """(count, 1) whether to mirror."""
        return torch.rand((count, 1), generator=generator, device=generator.device) < self.p

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """Mirrored where the parameter says so."""
        return torch.where(parameters[:, :, None, None], images.flip(-1), images)

    def apply_one(self, picture: Image.Image, parameters: Sequence[Any]) -> Image.Image:
        """The same for a picture."""
        return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if parameters[0] else picture


class RandomResizedCrop(Augmentation):
    """A box of a random share of the area (`scale`) and a random aspect (`ratio`), resized to (size, size).

    The box as torchvision draws it: the first of ten that fits, else the largest central one of a fair aspect.
    Bilinear, antialiased where it shrinks, as two products with small matrices: out = rows @ image @ columns'.
    """

    def __init__(
        self, size: int, scale: tuple[float, float] = (0.08, 1.0), ratio: tuple[float, float] = (3 / 4, 4 / 3)
    ) -> None:
        if size < 1 or not 0 < scale[0] <= scale[1] <= 1 or not 0 < ratio[0] <= ratio[1]:
            raise InputError(f"size={size}, scale={scale}, ratio={ratio}: give ranges in order, scale within 0 .. 1")
        self.size, self.scale, self.ratio = size, scale, ratio

    def draw(self, count: int, height: int, width: int, generator: Generator) -> Tensor:
        """(count, 4) top, left, height, width of the box, in whole pixels."""
        share, aspect = torch.rand((2, count, _TRIES), generator=generator, device=generator.device)
        area = height * width * (self.scale[0] + share * (self.scale[1] - self.scale[0]))
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        aspect = torch.exp(low + aspect * (high - low))
        heights, widths = (area / aspect).sqrt().round(), (area * aspect).sqrt().round()  # (n, tries)
        fits = (heights >= 1) & (heights <= height) & (widths >= 1) & (widths <= width)
        first, found = fits.int().argmax(dim=1, keepdim=True), fits.any(dim=1)
        place = torch.rand((2, count), generator=generator, device=generator.device)
        starts, lengths = [], []
        for drawn, central, whole, at in zip(
            (heights, widths), self._central(height, width), (height, width), place, strict=True
        ):
            length = torch.where(found, drawn.gather(1, first)[:, 0], float(central))
            room = whole - length
            starts.append(torch.where(found, torch.minimum((at * (room + 1)).floor(), room), (room / 2).floor()))
            lengths.append(length)
        return torch.stack([*starts, *lengths], dim=1).long()

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """(n, channels, size, size), float."""
        if not images.is_floating_point():
            raise InputError(f"images are of type {images.dtype}: give floats in 0 .. 1, images.float() / 255")
        top, left, height, width = parameters.to(images.dtype).unbind(dim=1)
        rows = _resampling(top, height, images.shape[2], self.size)[:, None]  # (n, 1, size, H)
        columns = _resampling(left, width, images.shape[3], self.size)[:, None]  # (n, 1, size, W)
        return rows @ images @ columns.transpose(-1, -2)

    def apply_one(self, picture: Image.Image, parameters: Sequence[Any]) -> Image.Image:
        """The same for a picture."""
        top, left, height, width = parameters
        box = picture.crop((left, top, left + width, top + height))
        return box.resize((self.size, self.size), Image.Resampling.BILINEAR)

    def _central(self, height: int, width: int) -> tuple[float, float]:
        if width / height < self.ratio[0]:
            return min(height, round(width / self.ratio[0])), width
        if width / height > self.ratio[1]:
            return height, min(width, round(height * self.ratio[1]))
        return height, width


def _resampling(start: Tensor, length: Tensor, source: int, size: int) -> Tensor:
    """(n, size, source) the share of each source pixel in each new one, for pixels start .. start + length.

    A triangle about the new pixel's centre, as wide as the step between new pixels, at least one source pixel.
    """
    start, step = start[:, None, None], (length / size)[:, None, None]
    centre = start + (torch.arange(size, device=start.device, dtype=start.dtype)[:, None] + 0.5) * step
    pixel = torch.arange(source, device=start.device, dtype=start.dtype) + 0.5
    share = (1 - (pixel - centre).abs() / step.clamp(min=1)).clamp(min=0)
    share = share * ((pixel > start) & (pixel < start + length[:, None, None]))
    return share / share.sum(dim=-1, keepdim=True)


def augmentation(recipe: Recipe, shape: Sequence[int]) -> Chain | None:
    """What a recipe does to images of this (H, W, channels) while training; None for nothing, and for features."""
    if len(shape) != 3:
        return None
    steps: list[Augmentation] = []
    if recipe.crop:
        steps.append(RandomResizedCrop(max(shape[:2]), (recipe.crop, 1.0)))
    if recipe.shift:
        steps.append(RandomShift(max(1, round(recipe.shift * max(shape[:2])))))
    if recipe.flip:
        steps.append(RandomFlip())
    return Chain(steps) if steps else None
