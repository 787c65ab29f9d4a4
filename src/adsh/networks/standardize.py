"""The first layer of networks on features: zero mean and unit deviation, whatever scale they come in."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Standardize(nn.Module):
    """(x - mean) / deviation, dimension by dimension, with the values of a sample of the data."""

    mean: Tensor
    scale: Tensor

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dimensions))
        self.register_buffer("scale", torch.ones(dimensions))

    def calibrate(self, sample: Tensor) -> None:
        """Takes the values from (b, d) inputs. A dimension that does not vary is only centred."""
        deviation = sample.double().std(dim=0, correction=0)
        self.mean.copy_(sample.double().mean(dim=0))
        self.scale.copy_(torch.where(deviation > 1e-8 * deviation.max(), 1 / deviation, 1.0))

    def forward(self, x: Tensor) -> Tensor:
        """(b, d) to (b, d)."""
        return (x - self.mean) * self.scale
