"""`alexnet`: five convolutions and three linear layers, the one-tower version (Krizhevsky, 2014)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from .backbone import Backbone
from .preprocess import Preprocess


class AlexNet(Backbone):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits), through the 4,096 outputs of the second linear layer.

    Layer for layer torchvision's, so that its files load; only `features` is a method here.
    """

    classifier: ClassVar[str] = "classifier.6."
    renames: ClassVar = ((r"^features\.", "convolutions."), (r"^classifier\.", "linear."))

    def __init__(self, bits: int, size: int | None, dropout: float) -> None:
        super().__init__()
        self.preprocess = Preprocess(size)
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.linear = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True),
            nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
        )  # fmt: skip
        self.head = nn.Linear(4096, bits)

    def body(self, x: Tensor) -> Tensor:
        """Features of prepared images."""
        x = functional.adaptive_avg_pool2d(self.convolutions(x), 6)
        out: Tensor = self.linear(x.flatten(1))
        return out


def build(bits: int, input_shape: tuple[int, ...], size: int | None = 224, dropout: float = 0.5) -> AlexNet:
    """`alexnet`, with images resized to `size`."""
    return AlexNet(bits, size, dropout)
