"""`mlp`: one hidden layer on standardised features."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .standardize import Standardize, scarcity

_NOISE, _MOST_NOISE = 0.0265, 2.0  # for each root of a dimension, with many points: .6 of 512; and at most


class MLP(nn.Module):
    """(b, d) features through `hidden` rectified units to (b, bits).

    In training, normal noise is added to the standardised features.

    Args:
        dimensions: of the features, d.
        bits: the code length.
        hidden: the number of rectified units.
        noise: the standard deviation of the noise; None for more the more dimensions and the fewer
            points there are.
    """

    def __init__(self, dimensions: int, bits: int, hidden: int, noise: float | None) -> None:
        super().__init__()
        self._given_noise = noise
        self.noise = _NOISE * dimensions**0.5 if noise is None else noise
        self.standardize = Standardize(dimensions)
        self.hidden = nn.Linear(dimensions, hidden)
        self.head = nn.Linear(hidden, bits)

    def calibrate(self, sample: Tensor) -> None:
        """Set the standardisation, and the noise unless it was given, from a sample of the features."""
        self.standardize.calibrate(sample)
        self._set_noise(self.standardize.scarcity)

    def set_noise_for(self, points: int) -> None:
        """Set the noise for training on so many points, unless it was given; the standardisation stays."""
        self._set_noise(scarcity(points, len(self.standardize.mean)))

    def _set_noise(self, scarce: float) -> None:
        if self._given_noise is None:
            noise = _NOISE * len(self.standardize.mean) ** 0.5
            self.noise = min(_MOST_NOISE, noise * max(1.0, scarce) ** 0.25)

    def forward(self, x: Tensor) -> Tensor:
        """Return F(x), (b, bits)."""
        x = self.standardize(x)
        if self.training and self.noise:
            x = x + self.noise * torch.randn_like(x)
        out: Tensor = self.head(torch.relu(self.hidden(x)))
        return out


def build(bits: int, input_shape: tuple[int, ...], hidden: int = 1024, noise: float | None = None) -> MLP:
    """Create `mlp`.

    Args:
        bits: the code length.
        input_shape: (d,), the shape of an item.
        hidden, noise: as of `MLP`.

    Returns:
        The network, with random weights.
    """
    return MLP(input_shape[0], bits, hidden, noise)
