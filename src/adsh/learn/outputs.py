"""U, the outputs of the sampled queries, where the network left them: what the update of the codes asks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from .similarity import Floats, Indices, sum_by

_FEW = 1024  # groups whose sums are a product with a matrix of 0 and 1, which a GPU does alike every time


@dataclass(frozen=True)
class Outputs:
    """(m, c) in float64, on the device they were on. What comes out is NumPy's, and small."""

    values: Tensor

    @classmethod
    def of(cls, outputs: Any, m: int, bits: int) -> Outputs:
        """Outputs of m queries, or an error that names both shapes."""
        values = outputs.detach() if isinstance(outputs, Tensor) else torch.as_tensor(np.asarray(outputs))
        if tuple(values.shape) != (m, bits):
            raise InputError(
                f"outputs have shape {tuple(values.shape)}, but {m} sampled points of {bits} bits need {(m, bits)}"
            )
        return cls(values.double())

    def gram(self) -> Floats:
        """(c, c) U'U, which is finite where U is."""
        gram: Floats = (self.values.T @ self.values).cpu().numpy()
        if not np.isfinite(gram).all():
            raise InputError("outputs hold NaN or infinity")
        return gram

    def sum_by(self, groups: Indices, count: int) -> Floats:
        """(count, c) sums of the rows by group."""
        if not self.values.is_cuda:
            return sum_by(groups, self.values.numpy(), count)
        where = torch.as_tensor(groups, device=self.values.device)
        if count <= _FEW:
            sums = torch.nn.functional.one_hot(where, count).double().T @ self.values
        else:
            sums = self.values.new_zeros((count, self.values.shape[1])).index_add_(0, where, self.values)
        out: Floats = sums.cpu().numpy()
        return out

    def signs(self) -> Outputs:
        """+1 and -1; +1 for 0."""
        return Outputs(torch.where(self.values >= 0, 1.0, -1.0).double())

    def largest(self) -> float:
        """max |u|."""
        return float(self.values.abs().max())

    def take(self, indices: Indices) -> Floats:
        """(b, c) some of the rows."""
        taken: Floats = self.values[torch.as_tensor(indices, device=self.values.device)].cpu().numpy()
        return taken
