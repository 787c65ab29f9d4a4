"""The network's outputs in evaluation mode, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from ..learn.similarity import Indices
from ..networks.class_lookup import split_scores
from ..networks.traits import traits_of
from .state import Activation, Loader

_BATCH = 1024  # items at once, unless the network says otherwise


def network_outputs(
    network: nn.Module,
    loader: Loader,
    indices: Indices | range,
    *,
    flip_tta: bool = False,
    bf16: bool = False,
    activation: Activation = torch.tanh,
) -> Iterator[Tensor]:
    """Yield the outputs tanh(F(x)) of the items at these indices.

    Args:
        network: F; left in evaluation mode.
        loader: gives the items.
        indices: which items, in order.
        flip_tta: take the mean of F over an image and its mirror image; a classifier decides by that mean.
        bf16: compute in bfloat16 on a GPU.
        activation: what makes outputs of F(x).

    Yields:
        (b, c) outputs, batch after batch.
    """
    network.eval()
    scores, decide = split_scores(network)
    size = traits_of(network).evaluation_batch or _BATCH  # large images come in smaller batches
    batches = (np.asarray(indices[i : i + size]) for i in range(0, len(indices), size))
    with torch.inference_mode():
        for inputs in loader.epoch(batches):
            with torch.autocast(inputs.device.type, torch.bfloat16, enabled=bf16 and inputs.is_cuda):
                outputs = scores(inputs).float()
                if flip_tta and inputs.ndim == 4:
                    outputs = (outputs + scores(inputs.flip(-1)).float()) / 2
            yield activation(decide(outputs))
