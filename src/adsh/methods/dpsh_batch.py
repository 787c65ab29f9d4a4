"""`dpsh_batch`, `dpsh_batch_d`: DPSH's loss on the pairs within a batch; its authors pair a batch with all points.

    u      (b, c) the network's outputs for a batch, without a tanh
    theta  u_i . u_j / 2

    loss = mean over the b x b pairs of  log(1 + exp theta) - s theta,  plus eta |sign(u) - u|^2 / n, the mean over u

Both ends of a pair are outputs of the network as it is, so steps may be as large as for other losses.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from .dpsh import DPSH, gradient, signs
from .training_points import TrainingPoints


class DPSHBatch(DPSH):
    """Deep pairwise-supervised hashing with pairs within the batch.

    Args:
        bits: Code length.
        eta: The weight of |sign(u) - u|^2.
        **shared: As of `DeepBaseline`.
    """

    name = "dpsh_batch"
    values: ClassVar[dict[str, Any]] = {}  # those of the preset
    passes_over_all = False

    def _gradient(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        weight = self.eta / table.points
        # both ends of a pair move: twice the gradient by one of them
        pairs = 2 * gradient(outputs, outputs, table.similar(positions, positions), 0.0)
        return pairs + (2 * weight / len(outputs)) * (outputs - signs(outputs))


def build(bits: int, **options: Any) -> DPSHBatch:
    """Build `dpsh_batch`, or `dpsh_batch_d` with `use_full_database`."""
    return DPSHBatch(bits, **options)
