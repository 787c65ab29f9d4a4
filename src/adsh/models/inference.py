"""Items through a network: tried out before training, and coded after it."""

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
from ..train.distributed import ProcessGroup
from ..train.forward import network_outputs
from ..utils.device import threads_for

Which = NDArray[np.int64] | range


def outputs(network: nn.Module, items: Items, device: torch.device, recipe: Recipe, indices: Which) -> Iterator[Tensor]:
    """tanh(F) of the items at these indices, batch by batch, as the recipe has them coded."""
    with threads_for(network, device), DeviceLoader(items, device) as loader:
        yield from network_outputs(network, loader, indices, flip_tta=recipe.flip_tta, bf16=recipe.bf16)


def encode(
    network: nn.Module,
    items: Items,
    device: torch.device,
    recipe: Recipe,
    indices: Which,
    group: ProcessGroup = ProcessGroup(),  # noqa: B008  # frozen
) -> Codes:
    """(n, bytes) packed codes; the outputs of a large collection never exist at once. All of `group` share the work."""
    if len(indices) < group.size:
        group = ProcessGroup(shards=group.shards)
    mine = (indices[share] for share in group.shard_slices(len(indices)))
    seen = (batch for some in mine for batch in outputs(network, items, device, recipe, some))
    codes = np.concatenate([pack(batch.cpu().numpy()) for batch in seen])
    return group.gather(torch.from_numpy(codes), len(indices)).numpy()


@contextmanager
def seen_by_the_last_layer(network: nn.Module) -> Iterator[list[Tensor]]:
    """A list that fills with the features of every batch that goes through; it stays empty without such a layer.

    That layer is `head`, or of a frozen network `top`.
    """
    seen: list[Tensor] = []

    def keep(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen.append(inputs[0].detach().float().cpu())

    layer = getattr(network, "top", None) or getattr(network, "head", None)
    hook = layer.register_forward_pre_hook(keep) if isinstance(layer, nn.Module) else None
    try:
        yield seen
    finally:
        if hook is not None:
            hook.remove()


def told_weights(network: nn.Module) -> str | None:
    """What an image network starts from, in words; nothing for those that always start from random weights."""
    loaded = getattr(network, "adsh_weights", None)
    if loaded and loaded.complete:
        return f"weights from {loaded.source}; the last layer starts at random"
    return str(loaded) if loaded else "random weights to start from" if hasattr(network, "preprocess") else None


def try_out(network: nn.Module, feed: DeviceLoader, bits: int) -> None:
    """Calibrates the network on a sample, and checks before training that its outputs are `bits` wide."""
    calibrate = getattr(network, "calibrate", None)
    spread = feed.items.spread()
    sample = feed(spread if calibrate is not None else spread[:2])  # thousands of large images would fill the memory
    if calibrate is not None:
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
