"""`mlp`: one hidden layer on standardised features."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .standardize import Standardize


class MLP(nn.Module):
    """(b, d) features through `hidden` rectified units to (b, bits).

    In training, normal noise is added to the standardised features.

    Args:
        dimensions: of the features, d.
        bits: the code length.
        hidden: the number of rectified units.
        noise: the standard deviation of the noise.
    """

    def __init__(self, dimensions: int, bits: int, hidden: int, noise: float) -> None:
        super().__init__()
        self.noise = noise
        self.standardize = Standardize(dimensions)
        self.hidden = nn.Linear(dimensions, hidden)
        self.head = nn.Linear(hidden, bits)

    def calibrate(self, sample: Tensor) -> None:
        """Set the standardisation from a sample of the features."""
        self.standardize.calibrate(sample)

    def forward(self, x: Tensor) -> Tensor:
        """Return F(x), (b, bits)."""
        x = self.standardize(x)
        if self.training and self.noise:
            x = x + self.noise * torch.randn_like(x)
        out: Tensor = self.head(torch.relu(self.hidden(x)))
        return out


def build(bits: int, input_shape: tuple[int, ...], hidden: int = 1024, noise: float = 0.3) -> MLP:
    """Create `mlp`.

    Args:
        bits: the code length.
        input_shape: (d,), the shape of an item.
        hidden, noise: as of `MLP`.

    Returns:
        The network, with random weights.
    """
    return MLP(input_shape[0], bits, hidden, noise)
