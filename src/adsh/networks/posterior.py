"""A head that predicts the class, and codes by a weighted mean of the classes' codes over its posterior.

    F(x) = atanh( sum_k p_k w_kb v_kb / sum_k p_k w_kb ),   p = softmax(scores(x) / temperature)

With equal weights the signs of the mean are the code of the least expected Hamming distance to the code of the true
class; weights that differ give codes between two classes grades (`learn.class_votes`). tanh(F(x)) is the mean itself. A
head with bits of its own tells only few classes apart by c bits; this one does any number.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import InputError
from .class_lookup import Lookup
from .frozen import Frozen
from .label_set_scores import LabelSetScores

_BITS_A_CLASS = 1.75  # times the bits, and more classes get a sharper posterior
_LARGEST_MEAN = 1 - 1e-6  # beyond it, atanh in float32 is infinite


class Posterior(Lookup):
    """A classifier that returns class scores in training, and the posterior mean of the codes in evaluation.

    Its `codes` are votes w_kb v_kb: their signs are the codes of the classes.

    Args:
        network: the classifier, (b, ...) to (b, classes).
        classes: the number of classes, K.
        bits: the code length.
        temperature: what scores are divided by; below 1, the code says less of the less probable classes.
    """

    def __init__(self, network: nn.Module, classes: int, bits: int, temperature: float) -> None:
        super().__init__(network, classes, bits)
        self.temperature = temperature

    def decide(self, outputs: Tensor) -> Tensor:
        """Return (b, c), atanh of the weighted posterior mean of the codes."""
        posterior = (outputs.float() / self.temperature).softmax(dim=1)
        mean = (posterior @ self.codes) / (posterior @ self.codes.abs())
        return torch.atanh(mean.clamp(-_LARGEST_MEAN, _LARGEST_MEAN))


def usual_temperature(classes: int, bits: int) -> float:
    """Return what scores are divided by: less than 1 where there are many classes for the bits.

    With few bits for each class, a mean over many classes is near no code, and far from that of the likeliest class.
    """
    return float(min(1.0, (_BITS_A_CLASS * bits / classes) ** 0.5))


def with_posterior(
    network: nn.Module, classes: int, bits: int, temperature: float, label_sets: int | None = None
) -> nn.Module:
    """Put the head on a network of `classes` outputs; on the part that is trained, where the rest is frozen.

    Args:
        network: the classifier.
        classes: the number of classes.
        bits: the code length.
        temperature: as of `Posterior`.
        label_sets: the sets of classes to tell apart, where an item may have several; None for one class an item.

    Returns:
        The network, (b, ...) items to (b, bits).
    """
    if isinstance(network, Frozen):
        network.top = with_posterior(network.top, classes, bits, temperature, label_sets)
        return network
    if label_sets is not None:
        head = getattr(network, "head", None)
        if not isinstance(head, nn.Linear):
            raise InputError("a posterior of label sets needs a network whose last layer is linear: give head='bits'")
        network.head = LabelSetScores(head.in_features, classes, label_sets)
    return Posterior(network, classes if label_sets is None else label_sets, bits, temperature)
