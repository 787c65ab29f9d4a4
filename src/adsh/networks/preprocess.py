"""What image networks do first, on the device: grey to three channels, normalise, resize."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import InputError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Preprocess(nn.Module):
    """(b, 3 or 1, H, W) images in 0 .. 1 to the (b, 3, size, size) that the weights were trained on.

    size None leaves the size as it is; the aspect is not kept. (x - mean) / std comes first: it commutes with
    the resizing, and the images at hand are mostly the smaller ones.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, size: int | None, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD):
        super().__init__()
        self.size = check_size(size)
        # Not part of the weights: published files have no such keys.
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("scale", 1 / torch.tensor(std).view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Images ready for the first convolution."""
        return resize((x - self.mean) * self.scale, self.size)  # the means have three channels: grey gets them too

    def extra_repr(self) -> str:
        """What print(network) shows."""
        return f"size={self.size}"


def check_size(size: object) -> int | None:
    """`size` as given, where it can be the side of an image."""
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 4096:
        raise InputError(f"size={size!r}: give the side that images are resized to, in pixels, or None to leave them")
    return size


def resize(x: Tensor, size: int | None) -> Tensor:
    """The batch at (size, size), bilinear; antialiased where a side shrinks. The aspect is not kept."""
    if size is None or x.shape[-2:] == (size, size):
        return x
    shrinks = max(x.shape[-2:]) > size
    return functional.interpolate(x, (size, size), mode="bilinear", align_corners=False, antialias=shrinks)
