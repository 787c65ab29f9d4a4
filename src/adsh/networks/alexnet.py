"""`alexnet`: five convolutions and three linear layers, the one-tower version (Krizhevsky, 2014)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from .backbone import Backbone, call_in_files
from .preprocess import Preprocess


class AlexNet(Backbone):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits), through the 4,096 outputs of the second linear layer.

    Layers and their names are torchvision's, so that its files load.

    Args:
        bits: the code length.
        size: the side that images are resized to; None for no resizing.
        dropout: the probability that an input of a linear layer is dropped in training.
    """

    replaced: ClassVar[str] = "classifier.6."

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
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True),
            nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
        )  # fmt: skip
        self.head = nn.Linear(4096, bits)
        call_in_files(self, "convolutions", "features")

    def body(self, x: Tensor) -> Tensor:
        """Return the features of preprocessed images."""
        x = functional.adaptive_avg_pool2d(self.convolutions(x), 6)
        out: Tensor = self.classifier(x.flatten(1))
        return out


def build(bits: int, input_shape: tuple[int, ...], size: int | None = 224, dropout: float = 0.5) -> AlexNet:
    """Create `alexnet`.

    Args:
        bits: the code length.
        input_shape: the shape of an item; images of any size are taken.
        size, dropout: as of `AlexNet`.

    Returns:
        The network, with random weights.
    """
    return AlexNet(bits, size, dropout)
