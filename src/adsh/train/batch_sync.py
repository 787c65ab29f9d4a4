"""Layers that look beyond a row, for a process that has some rows of a mini-batch: as if it had them all.

Noise and dropout are drawn for the whole mini-batch, and this process's rows taken; batch norm takes the mean and the
variance over all processes. A network needs no change for it: torch asks this mode first, in the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

Total = Callable[[Tensor], Tensor]  # the sum over all processes
Draw = Callable[[Callable[[], Tensor]], Tensor]  # what a draw for all rows gives


class WholeBatch(TorchFunctionMode):
    """The mode, for rows `share` of `count`. All processes go through the same layers in the same order."""

    def __init__(self, share: slice, count: int, total: Total, draw: Draw = lambda made: made()) -> None:
        super().__init__()
        self._share, self._count, self._total, self._draw = share, count, total, draw
        self._instead: dict[Any, Callable[..., Tensor]] = {
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
        return self._instead.get(func, func)(*args, **(kwargs or {}))

    def _all_rows(self, x: Tensor) -> Tensor:
        """(count, …) ones, of which x could be the share."""
        return x.new_ones((self._count, *x.shape[1:]))

    def _noise(self, drawn: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda x, **options: self._draw(lambda: drawn(self._all_rows(x), **options))[self._share]

    def _dropout(self, drawn: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def dropped(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
            if not training or not p:
                return drawn(input, p, training, inplace)
            return input * self._draw(lambda: drawn(self._all_rows(input), p, True))[self._share]

        return dropped

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
        n = self._count * values.shape[2:].numel()
        mean = _total(values.sum(over), self._total) / n
        centred = values - mean.view(shape)
        variance = _total((centred * centred).sum(over), self._total) / n
        with torch.no_grad():
            if running_mean is not None:
                running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            if running_var is not None:
                running_var.lerp_((variance * (n / max(n - 1, 1))).to(running_var.dtype), momentum)
        scale = torch.rsqrt(variance + eps)
        scale = scale if weight is None else scale * weight
        out = centred * scale.view(shape)
        return (out if bias is None else out + bias.view(shape)).to(input.dtype)


class _Total(torch.autograd.Function):
    """A sum over all processes: each one's part weighs in the losses of all, so the slopes are summed too."""

    @staticmethod
    def forward(context: Any, values: Tensor, total: Total) -> Tensor:
        context.total = total
        return total(values.clone())

    @staticmethod
    def backward(context: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return context.total(slopes[0].contiguous().clone()), None


def _total(values: Tensor, total: Total) -> Tensor:
    summed: Tensor = _Total.apply(values, total)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return summed
