"""U, the outputs of the sampled queries, where the network left them: what the update of the codes asks of them.

NumPy, or torch on a GPU; torch is not imported for the former.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from .similarity import Floats, Indices, sum_by

_FEW = 1024  # groups whose sums are a product with a matrix of 0 and 1, which a GPU does alike every time


class Outputs:
    """(m, c) in float64. What comes out is NumPy's, and small."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    @staticmethod
    def of(outputs: Any, m: int, bits: int) -> Outputs:
        """Outputs of m queries, or an error that names both shapes."""
        if tuple(np.shape(outputs)) != (m, bits):
            raise InputError(
                f"outputs have shape {tuple(np.shape(outputs))}, but {m} sampled points of {bits} bits need {(m, bits)}"
            )
        if getattr(outputs, "is_cuda", False):
            return OutputsOnDevice(outputs.detach().double())
        plain = outputs.detach().numpy() if hasattr(outputs, "detach") else np.asarray(outputs)
        return Outputs(plain.astype(np.float64))

    def gram(self) -> Floats:
        """(c, c) U'U, which is finite where U is."""
        gram = self._gram()
        if not np.isfinite(gram).all():
            raise InputError("outputs hold NaN or infinity")
        return gram

    def _gram(self) -> Floats:
        product: Floats = self._values.T @ self._values
        return product

    def sum_by(self, groups: Indices, count: int) -> Floats:
        """(count, c) sums of the rows by group."""
        return sum_by(groups, self._values, count)

    def signs(self) -> Outputs:
        """+1 and -1; +1 for 0."""
        return Outputs(np.where(self._values >= 0, 1.0, -1.0))

    def largest(self) -> float:
        """max |u|."""
        return float(np.abs(self._values).max())

    def take(self, indices: Indices) -> Floats:
        """(b, c) some of the rows."""
        return self._values[indices]


class OutputsOnDevice(Outputs):
    """The same on a GPU: only what was asked for leaves it."""

    _values: Any  # a torch.Tensor

    def _gram(self) -> Floats:
        return _plain(self._values.T @ self._values)

    def sum_by(self, groups: Indices, count: int) -> Floats:
        """(count, c) sums of the rows by group."""
        import torch

        where = torch.as_tensor(groups, device=self._values.device)
        if count <= _FEW:
            return _plain(torch.nn.functional.one_hot(where, count).double().T @ self._values)
        sums = self._values.new_zeros((count, self._values.shape[1]))
        return _plain(sums.index_add_(0, where, self._values))

    def signs(self) -> Outputs:
        """+1 and -1; +1 for 0."""
        return OutputsOnDevice((self._values >= 0).double() * 2 - 1)

    def largest(self) -> float:
        """max |u|."""
        return float(self._values.abs().max())

    def take(self, indices: Indices) -> Floats:
        """(b, c) some of the rows."""
        import torch

        return _plain(self._values[torch.as_tensor(indices, device=self._values.device)])


def _plain(tensor: Any) -> Floats:
    array: Floats = tensor.cpu().numpy()
    return array
