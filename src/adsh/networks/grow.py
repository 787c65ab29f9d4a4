"""Give a network with a posterior head other label sets to predict, and keep all that it has learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .frozen import Frozen
from .label_set_scores import LabelSetScores
from .posterior import Posterior
from .registry import create_network
from .restore import saved_options
from .traits import traits_of

_OF_HEAD = ("classes", "label_sets", "temperature")  # options of `create_network`
_NEW = -1  # in place of a row's former number


@dataclass(frozen=True)
class Outputs:
    """What a network is to predict, and where that was among its outputs before.

    Args:
        members: (K, L) 1 where a label set has a label.
        count: (K,) items of each label set.
        former_sets: (K,) the former number of each label set; -1 where it is new.
        former_labels: (L,) the former number of each label, of a network that scores labels; -1 where it is new.
        several: whether an item may have several labels.
    """

    members: NDArray[np.float32]
    count: NDArray[np.int64]
    former_sets: NDArray[np.int64]
    former_labels: NDArray[np.int64]
    several: bool


def grow(network: nn.Module, bits: int, shape: Sequence[int], outputs: Outputs) -> nn.Module:
    """Return a network that predicts other label sets, with the weights of this one.

    Args:
        network: has a posterior head, on its own or on a frozen backbone.
        bits: the code length.
        shape: of an item.
        outputs: what to predict.

    Returns:
        The network, on the CPU.
    """
    spec = traits_of(network).spec
    assert spec is not None  # only networks created by name have such a head
    options = {name: value for name, value in saved_options(spec).items() if name not in _OF_HEAD}
    sets, labels = outputs.members.shape
    head = {"classes": labels, "label_sets": sets} if outputs.several else {"classes": sets}
    grown = create_network(spec["name"], bits, shape, **head, **options)
    tensors: dict[str, Tensor] = dict(network.state_dict())
    for name, tensor in _head_tensors(posterior_of(network), posterior_of(grown), outputs).items():
        tensors[("top." if isinstance(network, Frozen) else "") + name] = tensor
    grown.load_state_dict({name: tensors[name] for name in grown.state_dict()})
    return grown


def posterior_of(network: nn.Module) -> Posterior:
    """Return the part of a network that has a posterior head."""
    part = network.top if isinstance(network, Frozen) else network
    assert isinstance(part, Posterior)
    return part


def _head_tensors(former: Posterior, new: Posterior, outputs: Outputs) -> dict[str, Tensor]:
    """Return the tensors of the new head by name: rows of the former one, and 0 for what is new."""
    old, head = traits_of(former).head, traits_of(new).head
    assert isinstance(old, nn.Linear)
    assert isinstance(head, nn.Linear)
    sets, labels = outputs.former_sets, outputs.former_labels
    rows = labels if isinstance(head, LabelSetScores) else sets
    tensors = {
        "network.head.weight": _rows(old.weight, rows),
        "network.head.bias": _rows(old.bias, rows),
        "codes": _rows(former.codes, sets),
    }
    if isinstance(head, LabelSetScores):
        head.set_label_sets(torch.as_tensor(outputs.members), torch.as_tensor(outputs.count))
        bias = head.set_bias.detach().clone()
        if isinstance(old, LabelSetScores):
            bias = torch.where(torch.as_tensor(sets) == _NEW, bias, _rows(old.set_bias, sets))
        tensors |= {"network.head.members": head.members, "network.head.set_bias": bias}
    return tensors


def _rows(tensor: Tensor, numbers: NDArray[np.int64]) -> Tensor:
    """Return the rows of these numbers, and 0 for -1."""
    tensor = tensor.detach().cpu()
    padded = torch.cat([tensor, torch.zeros_like(tensor[:1])])
    return padded[torch.as_tensor(numbers)]
