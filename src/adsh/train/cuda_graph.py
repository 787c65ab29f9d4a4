"""A network's passes as CUDA graphs: a step that is not compiled does not wait for the CPU to launch kernels."""

from __future__ import annotations

import gc
import warnings

import torch
from torch import Tensor, nn

from ..networks.class_lookup import split_scores
from ..networks.traits import traits_of


def can_be_captured(network: nn.Module, device: torch.device) -> bool:
    """Return whether a graph can hold the network's forward pass; torch captures on the first GPU alone."""
    network, _ = split_scores(network)
    return (
        traits_of(network).capturable
        and device.type == "cuda"
        and (device.index or 0) == torch.cuda.current_device() == 0
    )


class CapturedNetwork:
    """Forward and backward passes for inputs of one shape, in training mode; the weights are the network's own."""

    def __init__(self, network: nn.Module, inputs: Tensor, *, bf16: bool) -> None:
        self._passes = _Passes(network)
        stream = torch.cuda.current_stream()
        autocast = torch.autocast("cuda", dtype=torch.bfloat16, enabled=bf16, cache_enabled=False)
        try:
            with autocast, warnings.catch_warnings():
                # a capture has a stream of its own, and its backward pass a thread of its own: torch warns once of each
                warnings.filterwarnings("ignore", "The AccumulateGrad node's stream does not match")
                warnings.filterwarnings("ignore", "Attempting to run cuBLAS, but there was no current CUDA context")
                torch.cuda.make_graphed_callables(self._passes, (inputs.clone(),), allow_unused_input=True)
                self(inputs).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        except BaseException:
            torch.cuda.set_stream(stream)  # a capture that fails leaves its own stream in place
            self.close()
            raise

    def __call__(self, inputs: Tensor) -> Tensor:
        """(b, c) F(x), in memory of its own: the next replay overwrites the graph's."""
        out: Tensor = self._passes(inputs)
        return out.clone()

    def close(self) -> None:
        """Free the memory of the graphs, which refer to themselves."""
        self._passes.__dict__.pop("forward", None)
        gc.collect()


class _Passes(nn.Module):
    """A module around the network: torch replaces a module's `forward` by the captured one."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        out: Tensor = self.network(inputs)
        return out
