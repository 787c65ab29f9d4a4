"""The first step of the image networks, on the device: grey to three channels, normalise, resize."""

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

    With a size, both sides become `size`, by `interpolation` where they grow.
    With a `center_crop_ratio` below 1 they are resized to size / ratio, and the center is cut out. Normalising comes
    first: it commutes with resizing, and images are mostly smaller before it.

    Args:
        size: the side of the result; None for no resizing.
        mean, std: of each channel, in 0 .. 1; those of ImageNet unless given.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, size: int | None, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD):
        super().__init__()
        self.size = check_size(size)
        self.interpolation, self.center_crop_ratio = BILINEAR, 1.0
        # Not part of the weights: published files have no such keys. Hence never created on "meta" either.
        self.register_buffer("mean", torch.tensor(mean, device="cpu").view(-1, 1, 1), persistent=False)
        self.register_buffer("scale", 1 / torch.tensor(std, device="cpu").view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return images ready for the first convolution."""
        # The means have three channels, so that grey images get three as well.
        x = (x - self.mean) * self.scale
        if self.size is None or self.center_crop_ratio == 1:
            return resize(x, self.size, self.interpolation)
        side = round(self.size / self.center_crop_ratio)
        margin = (side - self.size) // 2
        inner = slice(margin, margin + self.size)
        return resize(x, side, self.interpolation)[..., inner, inner]

    def extra_repr(self) -> str:
        """Return what print(network) shows; stored features are recognised by it, so its words stay."""
        return f"size={self.size}, enlarge={self.interpolation}, centre={self.center_crop_ratio:g}"


def check_size(size: object) -> int | None:
    """Return `size` if it can be the side of an image."""
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 4096:
        raise InputError(
            f"size={size!r}: give the side that images are resized to, in pixels, or None to leave them as they are"
        )
    return size


def check_interpolation(mode: object) -> str:
    """Return `mode` if images can be enlarged by it."""
    if mode not in (BILINEAR, BICUBIC):
        raise InputError(f"interpolation={mode!r}: choose {BILINEAR} or {BICUBIC}")
    return str(mode)


def check_center_crop_ratio(ratio: object) -> float:
    """Return `ratio` if it can be the share of an image's side that is kept."""
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= 1:
        raise InputError(f"center_crop_ratio={ratio!r}: give the share of the side to keep, above 0 and up to 1")
    return float(ratio)


def resize(x: Tensor, size: int | None, interpolation: str = BILINEAR) -> Tensor:
    """Resize a batch of images, bilinear and antialiased where a side shrinks. The aspect is not kept.

    Args:
        x: (b, channels, H, W).
        size: the side of the result; None for no resizing.
        interpolation: "bilinear" or "bicubic", where no side shrinks.

    Returns:
        The batch (b, channels, size, size).
    """
    if size is None or x.shape[-2:] == (size, size):
        return x
    shrinks = max(x.shape[-2:]) > size
    mode = BILINEAR if shrinks else interpolation
    return functional.interpolate(x, (size, size), mode=mode, align_corners=False, antialias=shrinks)
