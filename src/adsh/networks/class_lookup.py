"""A classifier as a hash function: it looks up the code of the most probable class."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

_PARTS = ("calibrate", "features", "head", "preprocess", "adsh_weights")  # of the wrapped network


class Lookup(nn.Module):
    """A classifier that returns class scores in training, and the code of the highest-scoring class in evaluation.

    Args:
        network: the classifier, (b, ...) to (b, classes).
        classes: the number of classes, K.
        bits: the code length.
    """

    codes: Tensor  # (K, c) of +1/-1

    def __init__(self, network: nn.Module, classes: int, bits: int) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("codes", torch.ones(classes, bits))
        for part in _PARTS:
            if hasattr(network, part):
                object.__setattr__(
                    self, part, getattr(network, part)
                )  # as submodules of its own they would be saved twice

    @property
    def evaluation_batch(self) -> int:
        """The number of items that the wrapped network encodes at once, on its current device."""
        size: int = self.network.evaluation_batch  # type: ignore[assignment]  # AttributeError where it has none
        return size

    def forward(self, x: Tensor) -> Tensor:
        """(b, K) in training, (b, c) of +1/-1 in evaluation."""
        outputs: Tensor = self.network(x)
        return outputs if self.training else self.decide(outputs)

    def decide(self, outputs: Tensor) -> Tensor:
        """Return (b, c), the codes of the classes with the highest scores."""
        if outputs.shape[1] != len(self.codes):
            raise ValueError(
                f"the classifier has {outputs.shape[1]} outputs, but there are {len(self.codes)} label sets: make its "
                f"last layer {len(self.codes)} wide"
            )
        return self.codes[outputs.argmax(dim=1)]


def split_scores(network: nn.Module) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """Split F into a module whose outputs may be averaged over an image and its flipped copy, and the rest.

    Returns:
        The module, which for a `Lookup` gives class scores, and the function from their mean to F(x).
    """
    return (network.network, network.decide) if isinstance(network, Lookup) else (network, nn.Identity())
