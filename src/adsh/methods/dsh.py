"""`dsh`, `dsh_d`: deep supervised hashing (Liu et al., 2016): a contrastive loss on the pairs of a batch.

u       (b, c) the network's outputs, without a tanh
D_ij    |u_i - u_j|^2
margin  2c: the squared distance of two codes that differ in half their bits

loss = mean over pairs of  s D / 2 + (1 - s) max(0, margin - D) / 2 + alpha (| |u_i| - 1 | + | |u_j| - 1 |)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..hamming.bits import DEFAULT_BITS
from .deep_baseline import DeepBaseline
from .training_points import TrainingPoints


class DSH(DeepBaseline):
    """Deep supervised hashing.

    Args:
        bits: Code length.
        regulariser: alpha, the weight that pulls outputs towards +1 and -1.
        **shared: As of `DeepBaseline`.
    """

    name = "dsh"
    activation = staticmethod(torch.nn.Identity())
    weights = ("regulariser",)

    def __init__(self, bits: int = DEFAULT_BITS, *, regulariser: float = 0.01, **shared: Any) -> None:
        super().__init__(bits, **shared)
        self.regulariser = regulariser

    def _loss(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        return loss(outputs, table.similar(positions, positions), self.regulariser)

    def _gradient(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        return gradient(outputs, table.similar(positions, positions), self.regulariser)


def loss(u: Tensor, similar: Tensor, alpha: float) -> Tensor:
    """Return the mean loss over all pairs of the batch.

    Args:
        u: (b, c) the outputs of a batch.
        similar: (b, b) whether each pair is similar.
        alpha: The weight of the pull towards +1 and -1.

    Returns:
        A scalar.
    """
    D = squared_distances(u)
    pairs = torch.where(similar, D, (2 * u.shape[1] - D).clamp(min=0)) / 2
    return pairs.mean() + 2 * alpha * (u.abs() - 1).abs().sum(dim=1).mean()


def gradient(u: Tensor, similar: Tensor, alpha: float) -> Tensor:
    """Return the gradient of `loss` with respect to the outputs.

    Args:
        u: (b, c) the outputs of a batch.
        similar: (b, b) whether each pair is similar.
        alpha: As in `loss`.

    Returns:
        (b, c) the gradient.
    """
    b = len(u)
    near = squared_distances(u) < 2 * u.shape[1]
    W = similar.to(u.dtype) - (~similar & near).to(u.dtype)  # (b, b) symmetric: the weight of each pair
    pairs = (W.sum(dim=1, keepdim=True) * u - W @ u) * (2 / b**2)
    return pairs + (2 * alpha / b) * (u.abs() - 1).sign() * u.sign()


def squared_distances(u: Tensor) -> Tensor:
    """Return (b, b) squared distances."""
    squares = (u**2).sum(dim=1)
    return (squares[:, None] + squares - 2 * u @ u.T).clamp(min=0)


def build(bits: int, **options: Any) -> DSH:
    """Build `dsh`, or `dsh_d` with `use_full_database`."""
    return DSH(bits, **options)
