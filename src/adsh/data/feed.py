"""From items to the tensors a network takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .items import Items

_SHARE = 0.5  # of the free memory of the device that the items may take


class Feed:
    """Batches of items on the device: features as float32, images as (b, channels, H, W) in 0 .. 1, channels last.

    Where all images fit on the GPU they are sent there once, and a batch is a gather there.
    """

    def __init__(self, items: Items, device: torch.device) -> None:
        self.items, self.device = items, device
        self._all: Tensor | None = None
        if device.type == "cuda" and items.in_memory and len(items.shape) == 3:
            free, _ = torch.cuda.mem_get_info(device)
            if len(items) * int(np.prod(items.shape)) < _SHARE * free:
                self._all = torch.from_numpy(items.take(np.arange(len(items)))).to(device)

    @property
    def on_device(self) -> bool:
        """Whether the items are on the device, so that indices are best given as tensors there."""
        return self._all is not None

    def __call__(self, indices: NDArray[Any] | Tensor) -> Tensor:
        """The items at these indices."""
        if self._all is not None:
            batch = self._all[torch.as_tensor(indices, device=self.device)]
        else:
            chosen = indices.cpu().numpy() if isinstance(indices, Tensor) else indices
            batch = torch.from_numpy(self.items.take(chosen)).to(self.device)
        return batch.permute(0, 3, 1, 2).float().div(255) if batch.ndim == 4 else batch
