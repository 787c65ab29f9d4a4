"""`resnet18`, `resnet34` and `resnet50` (He et al., 2015), with torchvision's key names.

As there, the bottleneck's stride is in its 3 x 3 convolution.
"""

from __future__ import annotations

from torch import Tensor, nn

from .backbone import Backbone, start_convolutions
from .preprocess import Preprocess


class Basic(nn.Module):
    """Two 3 x 3 convolutions, added to the input.

    Args:
        inputs: channels of the input.
        width: channels of the output.
        stride: of the first convolution.
    """

    widening = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """(b, inputs, H, W) to (b, width, H / stride, W / stride)."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        out: Tensor = self.relu(y + (x if self.downsample is None else self.downsample(x)))
        return out


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions, added to the input.

    Args:
        inputs: channels of the input.
        width: channels of the 3 x 3 convolution; the output has four times as many.
        stride: of the 3 x 3 convolution.
    """

    widening = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.widening
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        """(b, inputs, H, W) to (b, 4 width, H / stride, W / stride)."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        out: Tensor = self.relu(y + (x if self.downsample is None else self.downsample(x)))
        return out


_Kind = type[Basic] | type[Bottleneck]

_DEPTHS: dict[int, tuple[_Kind, tuple[int, ...]]] = {
    18: (Basic, (2, 2, 2, 2)),
    34: (Basic, (3, 4, 6, 3)),
    50: (Bottleneck, (3, 4, 6, 3)),
}


class ResNet(Backbone):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits), through 512 or 2,048 pooled features.

    Args:
        bits: the code length.
        depth: 18, 34 or 50.
        size: the side that images are resized to; None for no resizing.
    """

    def __init__(self, bits: int, depth: int, size: int | None) -> None:
        super().__init__()
        block, repeats = _DEPTHS[depth]
        self.preprocess = Preprocess(size)
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widening = block.widening
        self.layer1 = _stage(block, repeats[0], 64, 64, 1)
        self.layer2 = _stage(block, repeats[1], 64 * widening, 128, 2)
        self.layer3 = _stage(block, repeats[2], 128 * widening, 256, 2)
        self.layer4 = _stage(block, repeats[3], 256 * widening, 512, 2)
        self.head = nn.Linear(512 * widening, bits)
        start_convolutions(self)

    def body(self, x: Tensor) -> Tensor:
        """Return the features of preprocessed images."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return x.mean((2, 3))


def build(bits: int, input_shape: tuple[int, ...], depth: int, size: int | None = 224) -> ResNet:
    """Create `resnet18`, `resnet34` or `resnet50`.

    Args:
        bits: the code length.
        input_shape: the shape of an item; images of any size are taken.
        depth, size: as of `ResNet`.

    Returns:
        The network, with random weights.
    """
    return ResNet(bits, depth, size)


def _stage(block: _Kind, count: int, inputs: int, width: int, stride: int) -> nn.Sequential:
    rest = [block(width * block.widening, width, 1) for _ in range(count - 1)]
    return nn.Sequential(block(inputs, width, stride), *rest)


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
