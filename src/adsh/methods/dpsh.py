"""`dpsh`, `dpsh_d`: deep pairwise-supervised hashing (Li et al., 2016): a batch against all training points.

    u      (b, c) the network's outputs for a batch, without a tanh
    U      (n, c) the outputs of all training points, each as it was when last in a batch; 0 before
    theta  u . U_j / 2; a pair is similar with probability 1 / (1 + exp(-theta))

    loss = mean over the b x n pairs of  log(1 + exp theta) - s theta,  plus eta |sign(u) - u|^2 / n, the mean over u

No n x n matrix exists, only b x n blocks. log(1 + exp theta) is computed by softplus: published code that takes the
exponential first overflows. sign(0) is +1.

U is up to an epoch old, so large steps diverge from it. Whatever the preset, the network learns as in the authors'
PyTorch program: by plain SGD at .05, divided by 10 every 50 of 150 epochs, in batches of 128 with a weight decay of
1e-5. `dpsh_batch` has the same loss without U, and learns as the preset says.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ..hamming.bits import DEFAULT_BITS
from .deep_baseline import DeepBaseline
from .training_points import TrainingPoints


class DPSH(DeepBaseline):
    """Deep pairwise-supervised hashing.

    Args:
        bits: Code length.
        eta: The weight of |sign(u) - u|^2.
        **shared: As of `DeepBaseline`.
    """

    name = "dpsh"
    activation = staticmethod(torch.nn.Identity())
    weights = ("eta",)
    values = {  # noqa: RUF012  # of the class for good
        "optimizer": "sgd", "lr": 0.05, "schedule": "tenth", "drop_interval": 50, "warmup": 0.0, "weight_decay": 1e-5,
        "ema_decay": 0.0, "outer": 150, "inner": 1, "batch_size": 128,
    }  # fmt: skip
    passes_over_all = True  # an epoch is all training points

    def __init__(self, bits: int = DEFAULT_BITS, *, eta: float = 10.0, **shared: Any) -> None:
        super().__init__(bits, **shared)
        self.eta = eta

    def _loss(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        return loss(outputs, outputs, table.similar(positions, positions), self.eta / table.points)

    def _gradient(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        if len(table.outputs) != table.points or table.outputs.device != outputs.device:
            earlier = table.outputs.to(outputs.device)
            table.outputs = earlier if len(earlier) else outputs.new_zeros(table.points, table.bits)
        table.outputs[positions] = outputs
        return gradient(outputs, table.outputs, table.similar(positions), self.eta / table.points)


def loss(u: Tensor, others: Tensor, similar: Tensor, weight: float) -> Tensor:
    """Return the mean loss over the pairs of a batch with the `others`, which are fixed.

    Args:
        u: (b, c) the outputs of the batch.
        others: (n, c) the outputs of the other points.
        similar: (b, n) whether each pair is similar.
        weight: eta / n.

    Returns:
        A scalar.
    """
    theta = u @ others.T / 2
    return (softplus(theta) - similar * theta).mean() + weight * ((signs(u) - u) ** 2).sum(dim=1).mean()


def gradient(u: Tensor, others: Tensor, similar: Tensor, weight: float) -> Tensor:
    """Return the gradient of `loss` with respect to u.

    Args:
        u: (b, c) the outputs of the batch.
        others: (n, c) the outputs of all training points.
        similar: (b, n) whether each pair is similar.
        weight: eta / n.

    Returns:
        (b, c) the gradient.
    """
    missing = torch.sigmoid(u @ others.T / 2)
    missing -= similar.to(u.dtype)
    return missing @ others / (2 * missing.numel()) + (2 * weight / len(u)) * (u - signs(u))


def signs(u: Tensor) -> Tensor:
    """Return +1/-1, and +1 for 0."""
    return torch.where(u >= 0, 1.0, -1.0).to(u.dtype)


def build(bits: int, **options: Any) -> DPSH:
    """Build `dpsh`, or `dpsh_d` with `use_full_database`."""
    return DPSH(bits, **options)
