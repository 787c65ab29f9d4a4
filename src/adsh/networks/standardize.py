"""The first layer of networks on features: zero mean and about unit deviation, whatever scale they come in."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FLOOR = 0.3  # of the overall deviation: so that a dimension that hardly varies does not count as much as the rest
_SCARCE = 100  # points a dimension: with fewer the floor rises, as what varies little is noise more often than not


def scarcity(points: int, dimensions: int) -> float:
    """Return the points it would take for each point there is."""
    return _SCARCE * dimensions / points


class Standardize(nn.Module):
    """(x - mean) / deviation, dimension by dimension, with both estimated on a sample of the data."""

    mean: Tensor
    scale: Tensor
    points: int | None = None  # that the network will be trained on; as many as the sample unless set

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dimensions))
        self.register_buffer("scale", torch.ones(dimensions))
        self.scarcity = 0.0  # points it would take for each point there is; known once calibrated

    def calibrate(self, sample: Tensor) -> None:
        """Set mean and scale from (b, d) inputs."""
        variance, mean = torch.var_mean(sample.double(), dim=0, correction=0)
        self.scarcity = scarcity(self.points or len(sample), sample.shape[1])
        floor = max(FLOOR**2, self.scarcity) * variance.mean()
        scale = (variance + floor).rsqrt()
        scale /= (variance * scale**2).mean().sqrt()  # unit deviation over all dimensions
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(floor > 0, scale, 1.0))

    def forward(self, x: Tensor) -> Tensor:
        """(b, d) to (b, d)."""
        return (x - self.mean) * self.scale
