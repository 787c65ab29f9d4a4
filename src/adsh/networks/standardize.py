"""The first layer of networks on features: zero mean and about unit deviation, whatever scale they come in."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FLOOR = 0.3  # of the overall deviation: so that a dimension that hardly varies does not count as much as the rest


class Standardize(nn.Module):
    """(x - mean) / deviation, dimension by dimension, with both estimated on a sample of the data."""

    mean: Tensor
    scale: Tensor

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dimensions))
        self.register_buffer("scale", torch.ones(dimensions))

    def calibrate(self, sample: Tensor) -> None:
        """Set mean and scale from (b, d) inputs."""
        variance, mean = torch.var_mean(sample.double(), dim=0, correction=0)
        floor = FLOOR**2 * variance.mean()
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(floor > 0, (variance + floor).rsqrt(), 1.0))

    def forward(self, x: Tensor) -> Tensor:
        """(b, d) to (b, d)."""
        return (x - self.mean) * self.scale
