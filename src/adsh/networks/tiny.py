"""`tiny`: three small convolutions, for a CPU, for small images and for tests."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class Tiny(nn.Module):
    """(b, channels, H, W) images in 0 .. 1, of any size, to (b, bits).

    Args:
        channels: of an image.
        bits: the code length.
        width: channels of the first convolution; each further one has twice as many.
    """

    def __init__(self, channels: int, bits: int, width: int) -> None:
        super().__init__()
        sizes = (channels, width, 2 * width, 4 * width)
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1, bias=False) for a, b in pairwise(sizes))
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for b in sizes[1:])
        self.head = nn.Linear(4 * width * 4, bits)

    @property
    def feature_size(self) -> int:
        """The number of features of an image."""
        return self.head.in_features

    def features(self, x: Tensor) -> Tensor:
        """Return (b, feature_size), the inputs of the last layer."""
        x = x - 0.5
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            x = torch.relu(norm(convolution(x)))
            if i < 2 and min(x.shape[-2:]) >= 4:  # halve, but leave at least 2 x 2 for the last pooling
                x = functional.max_pool2d(x, 2)
        return functional.adaptive_avg_pool2d(x, 2).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        """Return F(x), (b, bits)."""
        out: Tensor = self.head(self.features(x))
        return out


def build(bits: int, input_shape: tuple[int, ...], width: int = 16) -> Tiny:
    """Create `tiny`.

    Args:
        bits: the code length.
        input_shape: (H, W, channels), the shape of an item.
        width: as of `Tiny`.

    Returns:
        The network, with random weights.
    """
    return Tiny(input_shape[2], bits, width)
