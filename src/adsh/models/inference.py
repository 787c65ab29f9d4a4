"""Items through a network: checked before training, encoded after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config import Recipe
from ..data import Items
from ..data.loader import DeviceLoader
from ..errors import InputError, first_line
from ..hamming.bits import Codes, pack
from ..networks.standardize import Standardize
from ..networks.traits import traits_of
from ..train.distributed import ProcessGroup
from ..train.forward import network_outputs
from ..utils.device import threads_for

ItemIndices = NDArray[np.int64] | range


def outputs(
    network: nn.Module, items: Items, device: torch.device, recipe: Recipe, indices: ItemIndices
) -> Iterator[Tensor]:
    """Yield tanh(F) of items, batch by batch.

    Args:
        network: F.
        items: What the indices refer to.
        device: Where the network is.
        recipe: Says how to encode: averaged with mirror images or not, in bfloat16 or not.
        indices: Which items.

    Yields:
        (b, c) the outputs of each batch.
    """
    with threads_for(network, device), DeviceLoader(items, device) as loader:
        yield from network_outputs(network, loader, indices, flip_tta=recipe.flip_tta, bf16=recipe.bf16)


def encode(
    network: nn.Module,
    items: Items,
    device: torch.device,
    recipe: Recipe,
    indices: ItemIndices,
    group: ProcessGroup = ProcessGroup(),  # noqa: B008  # frozen
) -> Codes:
    """Return (n, bytes) packed codes; the outputs of a large collection are never all in memory.

    Args:
        network: F.
        items: What the indices refer to.
        device: Where the network is.
        recipe: As for `outputs`.
        indices: Which items.
        group: The processes that share the work; each returns all codes.

    Returns:
        The codes, in the order of the indices.
    """
    if len(indices) < group.size:
        group = ProcessGroup(shards=group.shards)
    shards = (indices[part] for part in group.shard_slices(len(indices)))
    batches = (batch for shard in shards for batch in outputs(network, items, device, recipe, shard))
    codes = np.concatenate([pack(batch.cpu().numpy()) for batch in batches])
    return group.gather(torch.from_numpy(codes), len(indices)).numpy()


@contextmanager
def capture_features(network: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the features, the input of the last layer, of every batch that the network is given in the block.

    Yields:
        A list with one tensor per batch; it stays empty for a network without such a layer.
    """
    features: list[Tensor] = []

    def append(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        features.append(inputs[0].detach().float().cpu())

    layer = traits_of(network).feature_layer
    hook = None if layer is None else layer.register_forward_pre_hook(append)
    try:
        yield features
    finally:
        if hook is not None:
            hook.remove()


def describe_weights(network: nn.Module) -> str | None:
    """Describe the weights that an image network starts from; None for networks that always start at random."""
    traits = traits_of(network)
    if traits.weights and traits.weights.complete:
        return f"weights from {traits.weights.source}; the last layer starts at random"
    if traits.weights:
        return str(traits.weights)
    return None if traits.preprocess is None else "random weights to start from"


def calibrate_and_check(network: nn.Module, loader: DeviceLoader, bits: int) -> None:
    """Calibrate the network on a sample, and raise unless its outputs are `bits` wide.

    Args:
        network: Not trained yet.
        loader: Of the items to train on.
        bits: The code length.
    """
    calibrate = traits_of(network).calibrate
    spread = loader.items.spread()
    sample = loader(spread if calibrate is not None else spread[:2])  # large images in thousands fill the memory
    if calibrate is not None:
        for layer in network.modules():
            if isinstance(layer, Standardize):
                layer.points = len(loader.items)
        calibrate(sample)
    network.eval()
    try:
        with torch.inference_mode():
            width = tuple(network(sample[:2]).shape)
    except (RuntimeError, ValueError, TypeError, AttributeError) as problem:
        shape = tuple(sample.shape[1:])
        raise InputError(f"the network cannot take inputs of shape {shape}: {first_line(problem)}") from None
    if width != (len(sample[:2]), bits):
        raise InputError(
            f"the network gives outputs of shape {width} for {len(sample[:2])} items, but bits={bits} needs "
            f"{(len(sample[:2]), bits)}: make its last layer {bits} wide"
        )
