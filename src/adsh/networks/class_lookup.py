"""A classifier's network as one that codes: the code of the class it finds most probable is looked up."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

_PARTS = ("calibrate", "features", "head", "preprocess", "adsh_weights")  # of the network within


class Lookup(nn.Module):
    """The network's outputs in training; afterwards the code of the largest."""

    codes: Tensor  # (K, c) of +1/-1

    def __init__(self, network: nn.Module, classes: int, bits: int) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("codes", torch.ones(classes, bits))
        for part in _PARTS:
            if hasattr(network, part):
                object.__setattr__(self, part, getattr(network, part))  # as parts of its own they would be saved twice

    @property
    def evaluation_batch(self) -> int:
        """That of the network within, where it is now."""
        size: int = self.network.evaluation_batch  # type: ignore[assignment]  # of a network that has none, an error
        return size

    def forward(self, x: Tensor) -> Tensor:
        """(b, K) in training, (b, c) of +1/-1 in evaluation."""
        outputs: Tensor = self.network(x)
        return outputs if self.training else self.decide(outputs)

    def decide(self, outputs: Tensor) -> Tensor:
        """(b, c) the codes of the classes with the largest outputs."""
        if outputs.shape[1] != len(self.codes):
            raise ValueError(
                f"{outputs.shape[1]} outputs for {len(self.codes)} label sets: make its last layer so wide"
            )
        return self.codes[outputs.argmax(dim=1)]


def scored(network: nn.Module) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """What gives outputs that may be averaged over an image and its mirror image, and what makes F(x) of their mean."""
    return (network.network, network.decide) if isinstance(network, Lookup) else (network, nn.Identity())
