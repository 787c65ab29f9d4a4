"""`frozen:NAME`: the features of another network, which stays as it is, and an `mlp` trained on them.

The features of an image never change, so they are computed once and training sees only them: minutes on a CPU where
training the whole network takes hours.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from .mlp import MLP, build


class Frozen(nn.Module):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits): `backbone.features`, then `top`."""

    def __init__(self, backbone: nn.Module, top: MLP) -> None:
        super().__init__()
        self.backbone, self.top = backbone, top
        backbone.requires_grad_(False)

    @property
    def preprocess(self) -> nn.Module:
        """What the backbone does first."""
        return cast(nn.Module, self.backbone.preprocess)

    @property
    def evaluation_batch(self) -> int:
        """Images to code at once."""
        return int(getattr(self.backbone, "evaluation_batch", 32))

    @property
    def feature_size(self) -> int:
        """How many numbers `features` gives an image."""
        return int(self.backbone.feature_size)  # type: ignore[arg-type]  # a number

    def features(self, x: Tensor) -> Tensor:
        """(b, feature_size): what the mlp sees."""
        x = x.contiguous(memory_format=torch.channels_last)
        features: Tensor = self.backbone.features(x).float()  # type: ignore[operator]  # a method
        return features

    def forward(self, x: Tensor) -> Tensor:
        """F(x)."""
        out: Tensor = self.top(self.features(x))
        return out

    def train(self, mode: bool = True) -> Frozen:
        """The backbone's statistics stay as they are."""
        super().train(mode)
        self.backbone.eval()
        return self


def freeze(backbone: nn.Module, bits: int, **options: Any) -> Frozen:
    """A backbone with an mlp on its features; the backbone's own last layer is not used."""
    backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # a stub that leaves it out
    top = build(bits, (int(backbone.feature_size),), **options)  # type: ignore[arg-type]  # a number
    return Frozen(backbone, top)
