"""`frozen:NAME`: the features of another network, which is not trained, and an `mlp` trained on them.

The features of an image never change, so they are computed once and training reads only them: minutes on a CPU where
training the whole network takes hours.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from .mlp import build
from .traits import traits_of

_BATCH = 32  # images to encode at once, unless the backbone says


class Frozen(nn.Module):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits): `backbone.features`, then `top`."""

    def __init__(self, backbone: nn.Module, top: nn.Module) -> None:
        super().__init__()
        self.backbone, self.top = backbone, top
        backbone.requires_grad_(False)

    @property
    def preprocess(self) -> nn.Module:
        """The preprocessing of the backbone."""
        return cast(nn.Module, self.backbone.preprocess)

    @property
    def evaluation_batch(self) -> int:
        """How many images to encode at once."""
        return traits_of(self.backbone).evaluation_batch or _BATCH

    @property
    def feature_size(self) -> int:
        """The number of features of an image."""
        return int(self.backbone.feature_size)  # type: ignore[arg-type]  # a number

    def features(self, x: Tensor) -> Tensor:
        """Return (b, feature_size), the inputs of the mlp."""
        x = x.contiguous(memory_format=torch.channels_last)
        features: Tensor = self.backbone.features(x).float()  # type: ignore[operator]  # a method
        return features

    def forward(self, x: Tensor) -> Tensor:
        """Return F(x), (b, bits)."""
        out: Tensor = self.top(self.features(x))
        return out

    def train(self, mode: bool = True) -> Frozen:
        """Set the mode of the mlp; the backbone stays in evaluation mode."""
        super().train(mode)
        self.backbone.eval()
        return self


def freeze(backbone: nn.Module, bits: int, **options: Any) -> Frozen:
    """Put an mlp on the features of a backbone. The backbone's own last layer is not used.

    Args:
        backbone: the network that gives the features.
        bits: the code length.
        **options: hidden and noise, as of the mlp.

    Returns:
        The backbone, which is not trained, with the mlp on top.
    """
    backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # a stub that leaves it out
    top = build(bits, (int(backbone.feature_size),), **options)  # type: ignore[arg-type]  # a number
    return Frozen(backbone, top)
