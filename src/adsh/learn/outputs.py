"""U, the outputs of Omega: on a GPU, what an update needs of them is computed there and then copied to the CPU."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .similarity import Floats, Indices, sum_by

if TYPE_CHECKING:
    from torch import Tensor, device

Sums = tuple[Floats, Floats, float]

_SPLITS = 64  # of a sum over Omega, computed in parallel on a GPU: one long sum would use one of its processors
_LARGEST = 1 << 23  # numbers in the matrix of group members, on a GPU: 64 MiB


def as_outputs(given: Any, groups: Indices, bits: int) -> Outputs:
    """Return the outputs of Omega, an array or a tensor, with the group of each point."""
    m = len(groups)
    if tuple(np.shape(given)) != (m, bits):
        raise InputError(
            f"outputs have shape {tuple(np.shape(given))}, but {m} sampled points of {bits} bits need {(m, bits)}"
        )
    given = given.detach() if hasattr(given, "detach") else given
    return DeviceOutputs(given, groups) if getattr(given, "is_cuda", False) else Outputs(given, groups)


class Outputs:
    """(m, c) outputs in float64, and the (m,) group of each."""

    def __init__(self, given: Any, groups: Indices) -> None:
        self._given, self._groups = given, groups

    @cached_property
    def here(self) -> Floats:
        """The outputs as an array."""
        outputs = self._given.cpu() if hasattr(self._given, "cpu") else self._given
        return np.asarray(outputs).astype(np.float64)

    def sums(self, count: int) -> Sums:
        """Return (c, c) U'U, (count, c) the sums of U by group, and the largest |u|."""
        U = self.here
        return U.T @ U, sum_by(self._groups, U, count), float(max(U.max(), -U.min()))

    def past(self, pull: Floats, room: Floats, largest: float) -> tuple[Indices, Floats]:
        """Return the points where pull u >= room in some bit, and their outputs.

        No |u| is above `largest`, so most groups have no such point, and of the others most bits need no comparison.

        Args:
            pull: (groups, c) factors of u.
            room: (groups, c) what the product must reach.
            largest: the largest |u|.
        """
        close = room <= np.abs(pull) * largest
        which = np.flatnonzero(np.any(close, axis=1)[self._groups])
        if len(which):
            group, bit = self._groups[which], np.flatnonzero(np.any(close, axis=0))
            which = which[np.any(pull[:, bit][group] * self.here[which][:, bit] >= room[:, bit][group], axis=1)]
        return which, self.here[which] if len(which) else np.empty((0, pull.shape[1]))


class DeviceOutputs(Outputs):
    """Outputs on a GPU: sums are computed there and copied to the CPU at once."""

    def __init__(self, given: Tensor, groups: Indices) -> None:
        super().__init__(given, groups)
        import torch

        self._outputs = given.double()
        self._at = torch.as_tensor(groups).to(given.device, non_blocking=True)

    def sums(self, count: int) -> Sums:
        """See `Outputs.sums`."""
        import torch

        m, bits = self._outputs.shape
        if count * m > _LARGEST:
            return super().sums(count)
        member = self._at == torch.arange(count, device=self._at.device)[:, None]
        left, splits = torch.cat([self._outputs.T, member]), math.gcd(m, _SPLITS)
        products = left.reshape(bits + count, splits, -1).transpose(0, 1) @ self._outputs.reshape(splits, -1, bits)
        largest = torch.linalg.vector_norm(self._outputs, math.inf, dim=0, keepdim=True)
        copied: Floats = torch.cat([products.sum(0), largest]).cpu().numpy()
        return copied[:bits], copied[bits:-1], float(copied[-1].max())

    def past(self, pull: Floats, room: Floats, largest: float) -> tuple[Indices, Floats]:
        """See `Outputs.past`."""
        import torch

        if len(room) * len(self._at) > _LARGEST:  # they were copied for their sums
            return super().past(pull, room, largest)
        if not (room <= np.abs(pull) * largest).any():
            return np.empty(0, dtype=np.int64), np.empty((0, pull.shape[1]))
        both = torch.as_tensor(np.stack([pull, room])).to(self._at.device)[:, self._at]  # (2, m, c)
        which = (both[0] * self._outputs >= both[1]).any(dim=1).nonzero()[:, 0]
        return which.cpu().numpy(), self._outputs[which].cpu().numpy()


def load_kernels(m: int, bits: int, device: device) -> None:
    """Run once on a GPU what updates run, so that their first timing does not include loading kernels."""
    import torch

    zeros, no_room = DeviceOutputs(torch.zeros((m, bits), device=device), np.zeros(m, np.int64)), np.zeros((1, bits))
    zeros.sums(1)
    zeros.past(no_room, no_room, 0.0)
