"""`cnn_f`: the fast network of Chatfield et al. (2014), which the paper uses. Five convolutions, three linear layers.

It loads `imagenet-vgg-f.mat` as published for MatConvNet, mean image included. Unlike torch's usual
networks: pixels are 0 .. 255 less a mean image; poolings pad one row and column at the end; local response
normalisation does not divide alpha by the number of channels it sums over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import InputError
from .backbone import Backbone
from .imresize import imresize
from .preprocess import BICUBIC, BILINEAR, IMAGENET_MEAN, Preprocess, check_size, resize

LRN_CHANNELS, LRN = 5, (2.0, 1e-4, 0.75)  # kappa, alpha, beta of the published file

# MatConvNet's layers and where they go
LAYERS: Sequence[tuple[str, str]] = (
    ("conv1", "convolutions.0"),
    ("norm1", "convolutions.2"),
    ("conv2", "convolutions.4"),
    ("norm2", "convolutions.6"),
    ("conv3", "convolutions.8"),
    ("conv4", "convolutions.10"),
    ("conv5", "convolutions.12"),
    ("fc6", "linear.0"),
    ("fc7", "linear.3"),
)


class MeanImage(Preprocess):
    """Images in 0 .. 1 to pixels in 0 .. 255 at `size`, less the mean image of the training set.

    Images are resized bilinearly, or bicubically as MATLAB does it.
    """

    mean: Tensor

    def __init__(self, size: int | None) -> None:
        nn.Module.__init__(self)
        self.size, self.interpolation = check_size(size), BILINEAR
        side = self.size or 1
        mean = 255 * torch.tensor(IMAGENET_MEAN).view(3, 1, 1).expand(3, side, side)
        self.register_buffer("mean", mean.clone())

    @property
    def center_crop_ratio(self) -> float:
        """1: the mean image is of the whole."""
        return 1.0

    @center_crop_ratio.setter
    def center_crop_ratio(self, ratio: float) -> None:
        if ratio != 1:
            raise InputError(f"center_crop_ratio={ratio!r}: cnn_f subtracts the mean of whole images, leave it out")

    def forward(self, x: Tensor) -> Tensor:
        """(b, 3 or 1, H, W) to (b, 3, size, size)."""
        if self.interpolation == BICUBIC and self.size is not None:
            return imresize(x, self.size) * 255 - self.mean
        return resize(x, self.size) * 255 - self.mean


class ResponseNorm(nn.Module):
    """x / (kappa + alpha * the sum of squares over five channels) ** beta, with values that weight files may set."""

    values: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("values", torch.tensor(LRN))

    def forward(self, x: Tensor) -> Tensor:
        """(b, c, H, W) to the same."""
        kappa, alpha, beta = self.values
        side, channels = LRN_CHANNELS // 2, x.shape[1]
        squares = functional.pad(x * x, (0, 0, 0, 0, side, side))
        near = squares[:, :channels].clone()
        for i in range(1, LRN_CHANNELS):
            near += squares[:, i : i + channels]
        return x / torch.pow(kappa + alpha * near, beta)


class CNNF(Backbone):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits), through the 4,096 outputs of the second linear layer.

    Args:
        bits: the code length.
        size: the side that images are resized to; None for no resizing.
        dropout: the probability that an output of a linear layer is dropped in training.
    """

    replaced: ClassVar[str] = "fc8."

    def __init__(self, bits: int, size: int | None, dropout: float) -> None:
        super().__init__()
        self.preprocess = MeanImage(size)
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4), nn.ReLU(inplace=True), ResponseNorm(), _pool(),
            nn.Conv2d(64, 256, 5, padding=2), nn.ReLU(inplace=True), ResponseNorm(), _pool(),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True), _pool(),
        )  # fmt: skip
        self.linear = nn.Sequential(
            nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True), nn.Dropout(dropout),
            nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(dropout),
        )  # fmt: skip
        self.head = nn.Linear(4096, bits)

    def body(self, x: Tensor) -> Tensor:
        """Return the features of preprocessed images."""
        x = functional.adaptive_avg_pool2d(self.convolutions(x), 6)  # 224 pixels give 6 x 6 as they are
        out: Tensor = self.linear(x.flatten(1))
        return out


def build(bits: int, input_shape: tuple[int, ...], size: int | None = 224, dropout: float = 0.5) -> CNNF:
    """Create `cnn_f`.

    Args:
        bits, size, dropout: as of `CNNF`.
        input_shape: the shape of an item; images of any size are taken.

    Returns:
        The network, with random weights.
    """
    return CNNF(bits, size, dropout)


def _pool() -> nn.MaxPool2d:
    return nn.MaxPool2d(3, 2, ceil_mode=True)  # MatConvNet's pad [0 1 0 1]
