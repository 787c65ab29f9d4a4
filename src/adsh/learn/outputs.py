"""U, the outputs of Omega, where they are: from a GPU their sums are fetched, and they themselves only where needed."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .similarity import FEW, Floats, Indices, sum_by

if TYPE_CHECKING:
    from torch import Tensor

Sums = tuple[Floats, Floats, float]

_PARTS = 64  # of a sum over Omega, side by side on a GPU: one long sum would keep one of its many processors busy


class Outputs:
    """(m, c), in float64."""

    def __init__(self, given: Any, m: int, bits: int) -> None:
        if tuple(np.shape(given)) != (m, bits):
            raise InputError(
                f"outputs have shape {tuple(np.shape(given))}, but {m} sampled points of {bits} bits need {(m, bits)}"
            )
        self._given = given.detach() if hasattr(given, "detach") else given

    @cached_property
    def here(self) -> Floats:
        """As an array."""
        found = self._given.cpu() if hasattr(self._given, "cpu") else self._given
        return np.asarray(found).astype(np.float64)

    def sums(self, groups: Indices, count: int) -> Sums:
        """(c, c) U'U, (count, c) the sums of U by group, and the largest size of an output."""
        if count <= FEW and getattr(self._given, "is_cuda", False):
            return sums_there(self._given, groups, count)
        U = self.here
        return U.T @ U, sum_by(groups, U, count), float(max(U.max(), -U.min()))


def sums_there(outputs: Tensor, groups: Indices, count: int) -> Sums:
    """The same, computed where the outputs are and fetched in one go."""
    import torch

    outputs, device, (m, bits) = outputs.double(), outputs.device, outputs.shape
    member = torch.as_tensor(groups, device=device) == torch.arange(count, device=device)[:, None]
    left, parts = torch.cat([outputs.T, member.double()]), math.gcd(m, _PARTS)
    products = left.reshape(bits + count, parts, -1).transpose(0, 1) @ outputs.reshape(parts, -1, bits)
    largest = outputs.abs().amax(0, keepdim=True)
    fetched: Floats = torch.cat([products.sum(0), largest]).cpu().numpy()
    return fetched[:bits], fetched[bits:-1], float(fetched[-1].max())
