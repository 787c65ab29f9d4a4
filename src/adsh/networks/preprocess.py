"""What image networks do first, on the device: grey to three channels, normalise, resize."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import InputError

BILINEAR, BICUBIC = "bilinear", "bicubic"
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Preprocess(nn.Module):
    """(b, 3 or 1, H, W) images in 0 .. 1 to the (b, 3, size, size) that the weights were trained on.

    size None leaves the size as it is; the aspect is not kept; `enlarge` says how it grows. Of `centre` below 1, images
    are made that much larger, and their centre is taken. (x - mean) / std comes first: it commutes with the resizing,
    and the images at hand are mostly the smaller ones.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, size: int | None, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD):
        super().__init__()
        self.size = check_size(size)
        self.enlarge, self.centre = BILINEAR, 1.0
        # Not part of the weights: published files have no such keys.
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("scale", 1 / torch.tensor(std).view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Images ready for the first convolution."""
        # the means have three channels: grey gets them too
        x = (x - self.mean) * self.scale
        if self.size is None or self.centre == 1:
            return resize(x, self.size, self.enlarge)
        side = round(self.size / self.centre)
        rim = (side - self.size) // 2
        inner = slice(rim, rim + self.size)
        return resize(x, side, self.enlarge)[..., inner, inner]

    def extra_repr(self) -> str:
        """What print(network) shows."""
        return f"size={self.size}, enlarge={self.enlarge}, centre={self.centre:g}"


def check_size(size: object) -> int | None:
    """`size` as given, where it can be the side of an image."""
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 4096:
        raise InputError(f"size={size!r}: give the side that images are resized to, in pixels, or None to leave them")
    return size


def check_enlarge(how: object) -> str:
    """`how` as given, where it is a way to enlarge images."""
    if how not in (BILINEAR, BICUBIC):
        raise InputError(f"enlarge={how!r}: choose {BILINEAR} or {BICUBIC}")
    return str(how)


def check_centre(share: object) -> float:
    """`share` as given, where it can be the share of an image's side that is kept."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InputError(f"centre={share!r}: give the share of the side to keep, above 0 and up to 1")
    return float(share)


def resize(x: Tensor, size: int | None, enlarge: str = BILINEAR) -> Tensor:
    """The batch at (size, size); bilinear and antialiased where a side shrinks. The aspect is not kept."""
    if size is None or x.shape[-2:] == (size, size):
        return x
    shrinks = max(x.shape[-2:]) > size
    mode = BILINEAR if shrinks else enlarge
    return functional.interpolate(x, (size, size), mode=mode, align_corners=False, antialias=shrinks)
