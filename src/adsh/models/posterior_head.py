"""The codes of a posterior head, once its network is trained."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..learn.class_table import ClassTable
from ..networks.label_set_scores import LabelSetScores
from ..networks.posterior import Posterior
from ..networks.traits import traits_of
from ..train.forward import network_outputs
from ..train.state import Loader

_SCORED = 4096  # points whose scores the votes are learned from


def give_codes(network: Posterior, table: ClassTable, loader: Loader | None, seed: int) -> None:
    """Give every label set its code and its votes, and the network the votes.

    Args:
        network: trained.
        table: what was learned together with it.
        loader: gives what it was trained on; None where no item is at hand.
        seed: for the sample that votes are learned from.
    """
    scores = None
    if loader is not None and table.learns_votes:
        sample = table.draw(min(_SCORED, table.num_sampleable), np.random.default_rng(seed))
        batches = network_outputs(network.network, loader, sample, activation=nn.Identity())
        scores = torch.cat([batch.cpu() for batch in batches])
    network.codes.copy_(torch.as_tensor(table.finish(_head_weights(network), scores)))


def _head_weights(network: Posterior) -> NDArray[np.float32]:
    """Return (K, d) the weights of each label set's score in the last layer."""
    head = traits_of(network).head
    assert isinstance(head, nn.Linear)
    weights = head.set_weights if isinstance(head, LabelSetScores) else head.weight
    found: NDArray[np.float32] = weights.detach().float().cpu().numpy()
    return found
