"""A network's passes as CUDA graphs: a step that is not compiled need not wait for the CPU to launch its many parts."""

from __future__ import annotations

import gc
import warnings

import torch
from torch import Tensor, nn

from ..networks.backbone import Backbone
from ..networks.class_lookup import split_scores


def can_be_recorded(network: nn.Module, device: torch.device) -> bool:
    """Whether its forward does nothing that a graph would leave out; and on the first GPU, as torch records there."""
    network, _ = split_scores(network)
    known = isinstance(network, Backbone) and network.replays
    return known and device.type == "cuda" and (device.index or 0) == torch.cuda.current_device() == 0


class Recorded:
    """Forward and back for inputs of one shape, in training mode; the weights are the network's own."""

    def __init__(self, network: nn.Module, inputs: Tensor, *, bf16: bool) -> None:
        self._passes = _Passes(network)
        stream = torch.cuda.current_stream()
        autocast = torch.autocast("cuda", dtype=torch.bfloat16, enabled=bf16, cache_enabled=False)
        try:
            with autocast, warnings.catch_warnings():
                # what is recorded has a stream of its own, and goes back in a thread of its own: torch says so, once
                warnings.filterwarnings("ignore", "The AccumulateGrad node's stream does not match")
                warnings.filterwarnings("ignore", "Attempting to run cuBLAS, but there was no current CUDA context")
                torch.cuda.make_graphed_callables(self._passes, (inputs.clone(),), allow_unused_input=True)
                self(inputs).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        except BaseException:
            torch.cuda.set_stream(stream)  # a recording that fails leaves its own in place
            self.close()
            raise

    def __call__(self, inputs: Tensor) -> Tensor:
        """(b, c) F(x), in memory of its own: the next replay writes to the same."""
        out: Tensor = self._passes(inputs)
        return out.clone()

    def close(self) -> None:
        """Gives the memory of the graphs back, which refer to themselves."""
        self._passes.__dict__.pop("forward", None)
        gc.collect()


class _Passes(nn.Module):
    """A network under another name: torch puts what it recorded in the place of a module's `forward`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        out: Tensor = self.network(inputs)
        return out
