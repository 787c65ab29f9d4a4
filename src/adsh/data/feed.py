"""From items to the tensors a network takes."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from .items import Items


class Feed:
    """Batches of items on the device: features as float32, images as (b, channels, H, W) in 0 .. 1."""

    def __init__(self, items: Items, device: torch.device) -> None:
        self.items, self.device = items, device

    def __call__(self, indices: NDArray[Any]) -> Tensor:
        """The items at these indices."""
        batch = torch.from_numpy(self.items.take(indices)).to(self.device)
        return batch.permute(0, 3, 1, 2).float().div(255) if batch.ndim == 4 else batch
