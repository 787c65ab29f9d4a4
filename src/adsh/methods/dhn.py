"""`dhn`, `dhn_d`: deep hashing network (Zhu et al., 2016): cross-entropy on inner products, and outputs near +1/-1.

    z      (b, c) tanh of the network's outputs
    theta  z_i . z_j; a pair is similar with probability 1 / (1 + exp(-theta))

    loss = mean over pairs of  log(1 + exp theta) - s theta,  plus lambda log cosh(|z| - 1), summed over bits

The last layer has ten times the learning rate of the others. log(1 + exp theta) is computed by softplus: published code
that takes the exponential first overflows on long codes.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ..hamming.bits import DEFAULT_BITS
from .deep_baseline import DeepBaseline
from .training_points import TrainingPoints


class DHN(DeepBaseline):
    """Deep hashing network.

    Args:
        bits: Code length.
        quantisation: lambda, the weight of log cosh(|z| - 1).
        **shared: As of `DeepBaseline`.
    """

    name = "dhn"
    values = {"head_lr": 10.0}  # noqa: RUF012  # of the class for good
    weights = ("quantisation",)

    def __init__(self, bits: int = DEFAULT_BITS, *, quantisation: float = 0.01, **shared: Any) -> None:
        super().__init__(bits, **shared)
        self.quantisation = quantisation

    def _loss(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        return loss(outputs, table.similar(positions, positions), self.quantisation)

    def _gradient(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        return gradient(outputs, table.similar(positions, positions), self.quantisation)


def loss(z: Tensor, similar: Tensor, weight: float) -> Tensor:
    """Return the mean loss over all pairs of the batch.

    Args:
        z: (b, c) the outputs of a batch, after tanh.
        similar: (b, b) whether each pair is similar.
        weight: lambda, of log cosh(|z| - 1).

    Returns:
        A scalar.
    """
    theta = z @ z.T
    far = z.abs() - 1
    log_cosh = softplus(2 * far) - far - math.log(2)
    return (softplus(theta) - similar * theta).mean() + weight * log_cosh.sum(dim=1).mean()


def gradient(z: Tensor, similar: Tensor, weight: float) -> Tensor:
    """Return the gradient of `loss` with respect to z.

    Args:
        z: (b, c) the outputs of a batch, after tanh.
        similar: (b, b) whether each pair is similar.
        weight: As in `loss`.

    Returns:
        (b, c) the gradient.
    """
    b = len(z)
    pairs = (torch.sigmoid(z @ z.T) - similar.to(z.dtype)) @ z * (2 / b**2)
    return pairs + (weight / b) * torch.tanh(z.abs() - 1) * z.sign()


def build(bits: int, **options: Any) -> DHN:
    """Build `dhn`, or `dhn_d` with `use_full_database`."""
    return DHN(bits, **options)
