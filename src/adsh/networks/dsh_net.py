"""`dsh_net`: the small network of Deep Supervised Hashing (Liu et al., 2016), for 32 x 32 images.

Three 5 x 5 convolutions, each pooled over 3 x 3 with a stride of 2 (the first by the maximum, the others by
the mean; windows that reach over the edge count what is inside), 500 rectified units, the hash layer.
"""

from __future__ import annotations

from torch import Tensor, nn

from ..errors import InputError
from .backbone import Backbone
from .preprocess import Preprocess, check_size


class DSHNet(Backbone):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits), through 500 features. The paper's sizes: 32, and 64 for NUS-WIDE."""

    def __init__(self, bits: int, size: int) -> None:
        super().__init__()
        self.preprocess = Preprocess(size)
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, ceil_mode=True),
            nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(inplace=True), nn.AvgPool2d(3, 2, ceil_mode=True),
            nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(inplace=True), nn.AvgPool2d(3, 2, ceil_mode=True),
        )  # fmt: skip
        side = size
        for _ in range(3):
            side //= 2
        self.linear = nn.Linear(64 * side * side, 500)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(500, bits)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def body(self, x: Tensor) -> Tensor:
        """Return the features of preprocessed images."""
        out: Tensor = self.relu(self.linear(self.convolutions(x).flatten(1)))
        return out


def build(bits: int, input_shape: tuple[int, ...], size: int = 32) -> DSHNet:
    """Create `dsh_net`.

    Args:
        bits: the code length.
        input_shape: the shape of an item; images of any size are taken.
        size: the side that images are resized to, a multiple of 8.

    Returns:
        The network, with random weights.
    """
    if check_size(size) is None or size % 8:
        raise InputError(f"size={size!r}: dsh_net takes a multiple of 8, 32 and 64 in its paper")
    return DSHNet(bits, size)
