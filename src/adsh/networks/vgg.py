"""`vgg11` and `vgg16`: 3 x 3 convolutions and three linear layers (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from .backbone import Backbone, call_in_files, start_convolutions
from .preprocess import Preprocess

# channels of each convolution, stage by stage; a stage ends with a pooling
_STAGES = {
    11: ((64,), (128,), (256, 256), (512, 512), (512, 512)),
    16: ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)),
}


class VGG(Backbone):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits), through the 4,096 outputs of the second linear layer.

    Layers and their names are torchvision's, without batch norms, so that its files load.

    Args:
        bits: the code length.
        depth: 11 or 16.
        size: the side that images are resized to; None for no resizing.
        dropout: the probability that an output of a linear layer is dropped in training.
    """

    replaced: ClassVar[str] = "classifier.6."

    def __init__(self, bits: int, depth: int, size: int | None, dropout: float) -> None:
        super().__init__()
        self.preprocess = Preprocess(size)
        layers: list[nn.Module] = []
        inputs = 3
        for stage in _STAGES[depth]:
            for outputs in stage:
                layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True)]
                inputs = outputs
            layers.append(nn.MaxPool2d(2))
        self.convolutions = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout(dropout),
            nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(dropout),
        )  # fmt: skip
        self.head = nn.Linear(4096, bits)
        call_in_files(self, "convolutions", "features")
        start_convolutions(self)

    def body(self, x: Tensor) -> Tensor:
        """Return the features of preprocessed images."""
        x = functional.adaptive_avg_pool2d(self.convolutions(x), 7)
        out: Tensor = self.classifier(x.flatten(1))
        return out


def build(bits: int, input_shape: tuple[int, ...], depth: int, size: int | None = 224, dropout: float = 0.5) -> VGG:
    """Create `vgg11` or `vgg16`.

    Args:
        bits: the code length.
        input_shape: the shape of an item; images of any size are taken.
        depth, size, dropout: as of `VGG`.

    Returns:
        The network, with random weights.
    """
    return VGG(bits, depth, size, dropout)
