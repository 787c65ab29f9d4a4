"""Random augmentation of images for training: shift, flip, random resized crop.

Each augmentation draws its parameters, one row an image, and applies them to a batch (n, channels, H, W) on whatever
device it is, without a loop over the images and without waiting for the device. The same generator state gives the
same parameters. With a generator of the batch's own device nothing leaves it: torch.Generator(device=images.device).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from ..config import Recipe
from ..errors import InputError

_TRIES = 10  # boxes drawn an image, of which the first that fits is taken

WHOLE = slice(None)


class Augmentation:
    """A random change of images: `draw` its parameters, then `apply` them to a batch."""

    def draw(self, count: int, height: int, width: int, generator: Generator) -> Tensor:
        """Draw (count, k) parameters for images of this size, on the generator's device.

        Args:
            count: the number of images.
            height, width: of each image.
            generator: draws the parameters.

        Returns:
            Tensor (count, k).
        """
        raise NotImplementedError

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """Return the (n, channels, H, W) batch, each image changed by its own row of parameters."""
        raise NotImplementedError

    def __call__(self, images: Tensor, generator: Generator, share: slice = WHOLE, of: int | None = None) -> Tensor:
        """Return a batch of images, changed at random.

        Args:
            images: (n, channels, H, W).
            generator: the parameters are drawn by it.
            share: where the batch lies in a larger one, which is split over several processes.
            of: how many images that larger batch has; each is changed as it would be within it.

        Returns:
            The changed batch; `RandomResizedCrop` changes its height and width too.
        """
        if images.ndim != 4:
            raise InputError(f"images have shape {tuple(images.shape)}: give (n, channels, H, W)")
        count, (height, width) = len(images) if of is None else of, images.shape[2:]
        parameters = self.draw(count, height, width, generator)[share]
        return self.apply(images, parameters.to(images.device, non_blocking=True))


class Chain(Augmentation):
    """Several augmentations, one after the other."""

    def __init__(self, steps: Sequence[Augmentation]) -> None:
        self.steps = list(steps)

    def __call__(self, images: Tensor, generator: Generator, share: slice = WHOLE, of: int | None = None) -> Tensor:
        """Apply all augmentations in turn, each with its own draw.

        Args:
            images, generator, share, of: as of `Augmentation.__call__`.

        Returns:
            The changed batch.
        """
        for step in self.steps:
            images = step(images, generator, share, of)
        return images


class RandomShift(Augmentation):
    """Shift by up to `pixels` each way, with the edge repeated: a random crop of the padded image. Any type, exact."""

    def __init__(self, pixels: int) -> None:
        if pixels < 0:
            raise InputError(f"pixels={pixels}: give a whole number of at least 0")
        self.pixels = pixels

    def draw(self, count: int, height: int, width: int, generator: Generator) -> Tensor:
        """Draw where each crop starts, relative to the image: down, right.

        Args:
            count, height, width, generator: as of `Augmentation.draw`.

        Returns:
            Tensor (count, 2), from -pixels to pixels.
        """
        low, high = -self.pixels, self.pixels + 1
        return torch.randint(low, high, (count, 2), generator=generator, device=generator.device)

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """Shift by one gather; the channels of a pixel move together, and the result is channels-last."""
        n, _, height, width = images.shape
        device = images.device
        rows = (torch.arange(height, device=device) + parameters[:, :1]).clamp_(0, height - 1)  # (n, H)
        columns = (torch.arange(width, device=device) + parameters[:, 1:]).clamp_(0, width - 1)  # (n, W)
        which = torch.arange(n, device=device)[:, None, None]
        return images.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


class RandomFlip(Augmentation):
    """Flip left to right with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise InputError(f"p={p}: give a probability, 0 to 1")
        self.p = p

    def draw(self, count: int, height: int, width: int, generator: Generator) -> Tensor:
        """Draw whether to flip each image.

        Args:
            count, height, width, generator: as of `Augmentation.draw`.

        Returns:
            Tensor (count, 1) of bool.
        """
        return torch.rand((count, 1), generator=generator, device=generator.device) < self.p

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """Flip the images whose parameter is true."""
        return torch.where(parameters[:, :, None, None], images.flip(-1), images)


class RandomResizedCrop(Augmentation):
    """Cut out a box of a random share of the area (`scale`) and aspect (`ratio`), and resize it to (size, size).

    The box is drawn as torchvision draws it: the first of ten that fits, else the largest central one within `ratio`.
    Bilinear, antialiased where it shrinks, as two products with small matrices: out = rows @ image @ columns'.

    Args:
        size: the side of the result.
        scale: the least and the largest share of the area.
        ratio: the least and the largest width / height.
    """

    def __init__(
        self, size: int, scale: tuple[float, float] = (0.08, 1.0), ratio: tuple[float, float] = (3 / 4, 4 / 3)
    ) -> None:
        if size < 1 or not 0 < scale[0] <= scale[1] <= 1 or not 0 < ratio[0] <= ratio[1]:
            raise InputError(f"size={size}, scale={scale}, ratio={ratio}: give ranges in order, scale within 0 .. 1")
        self.size, self.scale, self.ratio = size, scale, ratio

    def draw(self, count: int, height: int, width: int, generator: Generator) -> Tensor:
        """Draw top, left, height and width of each box.

        Args:
            count, height, width, generator: as of `Augmentation.draw`.

        Returns:
            Tensor (count, 4), in whole pixels.
        """
        share, aspect = torch.rand((2, count, _TRIES), generator=generator, device=generator.device)
        area = height * width * (self.scale[0] + share * (self.scale[1] - self.scale[0]))
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        aspect = torch.exp(low + aspect * (high - low))
        heights, widths = (area / aspect).sqrt().round(), (area * aspect).sqrt().round()  # (n, tries)
        fits = (heights >= 1) & (heights <= height) & (widths >= 1) & (widths <= width)
        first, found = fits.int().argmax(dim=1, keepdim=True), fits.any(dim=1)
        place = torch.rand((2, count), generator=generator, device=generator.device)
        starts, lengths = [], []
        for drawn, central, side, at in zip(
            (heights, widths), self._central(height, width), (height, width), place, strict=True
        ):
            length = torch.where(found, drawn.gather(1, first)[:, 0], float(central))
            room = side - length
            starts.append(torch.where(found, torch.minimum((at * (room + 1)).floor(), room), (room / 2).floor()))
            lengths.append(length)
        return torch.stack([*starts, *lengths], dim=1).long()

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """Return (n, channels, size, size), float."""
        if not images.is_floating_point():
            raise InputError(f"images are of type {images.dtype}: give floats in 0 .. 1, images.float() / 255")
        top, left, height, width = parameters.to(images.dtype).unbind(dim=1)
        rows = _resampling(top, height, images.shape[2], self.size)[:, None]  # (n, 1, size, H)
        columns = _resampling(left, width, images.shape[3], self.size)[:, None]  # (n, 1, size, W)
        return rows @ images @ columns.transpose(-1, -2)

    def _central(self, height: int, width: int) -> tuple[float, float]:
        if width / height < self.ratio[0]:
            return min(height, round(width / self.ratio[0])), width
        if width / height > self.ratio[1]:
            return height, min(width, round(height * self.ratio[1]))
        return height, width


def _resampling(start: Tensor, length: Tensor, source: int, size: int) -> Tensor:
    """Return (n, size, source), the weight of each source pixel in each new one, for pixels start .. start + length.

    The weights are a triangle about the new pixel's center, as wide as the step between new pixels, and at least one
    source pixel.

    Args:
        start: (n,), the first pixel of each box.
        length: (n,), its pixels.
        source: the pixels of the whole side.
        size: the pixels of the new side.

    Returns:
        Tensor (n, size, source); each row sums to 1.
    """
    start, step = start[:, None, None], (length / size)[:, None, None]
    center = start + (torch.arange(size, device=start.device, dtype=start.dtype)[:, None] + 0.5) * step
    pixel = torch.arange(source, device=start.device, dtype=start.dtype) + 0.5
    share = (1 - (pixel - center).abs() / step.clamp(min=1)).clamp(min=0)
    share = share * ((pixel > start) & (pixel < start + length[:, None, None]))
    return share / share.sum(dim=-1, keepdim=True)


class UserAugmentation(Augmentation):
    """A user's function of a batch (n, channels, H, W) with values in 0 .. 1; it may draw from torch's generator."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    def __call__(self, images: Tensor, generator: Generator, share: slice = WHOLE, of: int | None = None) -> Tensor:
        """Return what the function makes of a batch; raise where it has another number of images or channels."""
        changed = self.function(images)
        if not isinstance(changed, Tensor) or changed.ndim != 4 or changed.shape[:2] != images.shape[:2]:
            shape = tuple(changed.shape) if isinstance(changed, Tensor) else type(changed).__name__
            raise InputError(
                f"augment gave {shape} for a batch of shape {tuple(images.shape)}: return a tensor of as many images"
            )
        return changed


def augmentation(
    recipe: Recipe, shape: Sequence[int], function: Callable[[Tensor], Tensor] | None = None
) -> Chain | None:
    """Return the augmentation of a recipe for items of this shape, and then a user's own; None if there is none.

    Args:
        recipe: says what to do with images; nothing is done with features.
        shape: of an item.
        function: the user's own, for images alone.
    """
    if len(shape) != 3:
        if function is not None:
            raise InputError("augment goes with images and a network that is trained on them: leave it out")
        return None
    steps: list[Augmentation] = []
    if recipe.crop:
        steps.append(RandomResizedCrop(max(shape[:2]), (recipe.crop, 1.0)))
    if recipe.shift:
        steps.append(RandomShift(max(1, round(recipe.shift * max(shape[:2])))))
    if recipe.flip:
        steps.append(RandomFlip())
    if function is not None:
        steps.append(UserAugmentation(function))
    return Chain(steps) if steps else None
