"""Noise, dropout and batch norm for a process that has some rows of a mini-batch, as if it had them all.

Noise and dropout masks are drawn for the whole mini-batch, and this process's rows taken; batch norm takes the mean and
the variance over all processes. A network needs no change: torch calls this function mode first in the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

Sum = Callable[[Tensor], Tensor]  # over all processes
Draw = Callable[[Callable[[], Tensor]], Tensor]  # runs a draw for all rows, once for all threads


class BatchSync(TorchFunctionMode):
    """A torch function mode for the rows `share` of `size`. All processes pass the same layers in the same order."""

    def __init__(self, share: slice, size: int, sum_all: Sum, draw: Draw = lambda compute: compute()) -> None:
        super().__init__()
        self._share, self._size, self._sum_all, self._draw = share, size, sum_all, draw
        self._replacements: dict[Any, Callable[..., Tensor]] = {
            torch.randn_like: self._noise(torch.randn_like),
            torch.rand_like: self._noise(torch.rand_like),
            functional.dropout: self._dropout(functional.dropout),
            functional.dropout1d: self._dropout(functional.dropout1d),
            functional.dropout2d: self._dropout(functional.dropout2d),
            functional.batch_norm: self._batch_norm,
        }

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return self._replacements.get(func, func)(*args, **(kwargs or {}))

    def _all_rows(self, x: Tensor) -> Tensor:
        """(size, …) ones: a tensor for all rows, of which x could be the share."""
        return x.new_ones((self._size, *x.shape[1:]))

    def _noise(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda x, **options: self._draw(lambda: function(self._all_rows(x), **options))[self._share]

    def _dropout(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
            if not training or not p:
                return function(input, p, training, inplace)
            return input * self._draw(lambda: function(self._all_rows(input), p, True))[self._share]

        return dropout

    def _batch_norm(
        self,
        input: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        if not training:
            return functional.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
        over = [0, *range(2, input.ndim)]
        shape = [1, -1, *[1] * (input.ndim - 2)]
        values = input.float()
        n = self._size * values.shape[2:].numel()
        mean = _sum(values.sum(over), self._sum_all) / n
        centered = values - mean.view(shape)
        variance = _sum((centered * centered).sum(over), self._sum_all) / n
        with torch.no_grad():
            if running_mean is not None:
                running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            if running_var is not None:
                running_var.lerp_((variance * (n / max(n - 1, 1))).to(running_var.dtype), momentum)
        scale = torch.rsqrt(variance + eps)
        scale = scale if weight is None else scale * weight
        out = centered * scale.view(shape)
        return (out if bias is None else out + bias.view(shape)).to(input.dtype)


class _SumAll(torch.autograd.Function):
    """A sum over all processes: each summand contributes to the losses of all, so gradients are summed too."""

    @staticmethod
    def forward(context: Any, values: Tensor, sum_all: Sum) -> Tensor:
        context.sum_all = sum_all
        return sum_all(values.clone())

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return context.sum_all(gradients[0].contiguous().clone()), None


def _sum(values: Tensor, sum_all: Sum) -> Tensor:
    summed: Tensor = _SumAll.apply(values, sum_all)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return summed
