"""A head that predicts the class, and codes by the mean of the classes' codes over its posterior.

    F(x) = atanh( sum_k p_k v_k ),   p = softmax(scores(x) / temperature)

The signs of the mean are the code of the least expected Hamming distance to the code of the true class, and tanh(F(x))
is the mean itself. A head with bits of its own tells only few classes apart by c bits; this one does any number.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .class_lookup import Lookup
from .frozen import Frozen

_LARGEST_MEAN = 1 - 1e-6  # beyond it, atanh in float32 is infinite


def temperature(classes: int, bits: int) -> float:
    """Return the temperature for so many classes and bits: 1.5, and less where a code has few bits a class.

    Softer posteriors tell items apart that have the same most probable class, which needs bits to do so; chosen on
    held-out items of Caltech-101 and CUB-200 (decision 18).
    """
    return 1 + min(0.5, bits / classes)


class Posterior(Lookup):
    """A classifier that returns class scores in training, and the posterior mean of the codes in evaluation.

    Args:
        network: the classifier, (b, ...) to (b, classes).
        classes: the number of classes, K.
        bits: the code length.
        temperature: what scores are divided by; above 1, the code says more of the less probable classes.
    """

    def __init__(self, network: nn.Module, classes: int, bits: int, temperature: float) -> None:
        super().__init__(network, classes, bits)
        self.temperature = temperature

    def decide(self, outputs: Tensor) -> Tensor:
        """Return (b, c), atanh of the posterior mean of the codes."""
        mean = (outputs.float() / self.temperature).softmax(dim=1) @ self.codes
        return torch.atanh(mean.clamp(-_LARGEST_MEAN, _LARGEST_MEAN))


def with_posterior(network: nn.Module, classes: int, bits: int, temperature: float) -> nn.Module:
    """Put the head on a network of `classes` outputs; on the part that is trained, where the rest is frozen.

    Args:
        network: the classifier.
        classes: the number of classes.
        bits: the code length.
        temperature: as of `Posterior`.

    Returns:
        The network, (b, ...) items to (b, bits).
    """
    if isinstance(network, Frozen):
        network.top = Posterior(network.top, classes, bits, temperature)
        return network
    return Posterior(network, classes, bits, temperature)
