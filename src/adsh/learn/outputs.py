"""U, the outputs of the sampled queries, where the network left them: what the update of the codes asks of them.

NumPy, or torch on a GPU; torch is not imported for the former.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from .similarity import Floats, Indices, sum_by

_FEW = 1024  # groups whose sums are a product with a matrix of 0 and 1, which a GPU does alike every time


class Totals(NamedTuple):
    """What the update needs of all outputs together."""

    gram: Floats  # (c, c)  U'U
    sums: Floats  # (groups, c)
    largest: float  # max |u|


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

    def totals(self, groups: Indices, count: int) -> Totals:
        """U'U, the sums of the rows by group, and max |u|. They are finite where U is."""
        totals = self._totals(groups, count)
        if not np.isfinite(totals.gram).all():
            raise InputError("outputs hold NaN or infinity")
        return totals

    def _totals(self, groups: Indices, count: int) -> Totals:
        U = self._values
        return Totals(U.T @ U, sum_by(groups, U, count), float(np.abs(U).max()))

    def signs(self) -> Outputs:
        """+1 and -1; +1 for 0."""
        return Outputs(np.where(self._values >= 0, 1.0, -1.0))

    def take(self, indices: Indices) -> Floats:
        """(b, c) some of the rows."""
        return self._values[indices]


class OutputsOnDevice(Outputs):
    """The same on a GPU: only what was asked for leaves it."""

    _values: Any  # a torch.Tensor

    def _totals(self, groups: Indices, count: int) -> Totals:
        import torch

        U = self._values
        c = U.shape[1]
        where = torch.as_tensor(groups, device=U.device)
        if count <= _FEW:
            sums = (where == torch.arange(count, device=U.device)[:, None]).double() @ U
        else:
            sums = U.new_zeros((count, c)).index_add_(0, where, U)
        together = _plain(torch.cat([U.T @ U, sums, U.abs().max().expand(1, c)]))  # one wait for the device
        return Totals(together[:c], together[c:-1], float(together[-1, 0]))

    def signs(self) -> Outputs:
        """+1 and -1; +1 for 0."""
        return OutputsOnDevice((self._values >= 0).double() * 2 - 1)

    def take(self, indices: Indices) -> Floats:
        """(b, c) some of the rows."""
        import torch

        return _plain(self._values[torch.as_tensor(indices, device=self._values.device)])


def _plain(tensor: Any) -> Floats:
    array: Floats = tensor.cpu().numpy()
    return array
