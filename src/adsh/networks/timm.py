"""`timm:NAME`: any image network of the timm library, where that is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from torch import Tensor, nn

from ..errors import InputError, MissingExtraError, first_line
from .backbone import Backbone
from .preprocess import IMAGENET_MEAN, IMAGENET_STD, Preprocess, check_size


class TimmNetwork(Backbone):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits), through the pooled features of timm's network.

    Args:
        bits: the code length.
        body: timm's network without its classifier.
        width: the number of its features.
        preprocess: prepares images for it.
    """

    replays: ClassVar[bool] = False  # unknown for networks of timm
    renames: ClassVar = ((r"^(?!model\.|head\.(weight|bias)$)", "model."),)

    def __init__(self, bits: int, body: nn.Module, width: int, preprocess: Preprocess) -> None:
        super().__init__()
        self.preprocess, self.model = preprocess, body
        self.head = nn.Linear(width, bits)

    def body(self, x: Tensor) -> Tensor:
        """Return the features of preprocessed images."""
        out: Tensor = self.model(x)
        return out


def build(
    bits: int, input_shape: tuple[int, ...], model: str, size: int | str | None = "auto", pretrained: bool = True
) -> TimmNetwork:
    """Create timm's `model` with a hash layer on top. If `pretrained`, timm downloads its weights.

    Args:
        bits: the code length.
        input_shape: the shape of an item; images of any size are taken.
        model: a name of `timm.list_models()`.
        size: the side that images are resized to; by default what timm states, None for no resizing.
        pretrained: whether to start from timm's weights.

    Returns:
        The network with its hash layer.
    """
    timm = _timm(model)
    try:
        body: Any = timm.create_model(model, pretrained=pretrained, num_classes=0)
    except Exception as problem:
        raise InputError(
            f"network 'timm:{model}' cannot be created ({first_line(problem)}): timm.list_models() has the names, and "
            "weights=None starts without a download"
        ) from None
    config = getattr(body, "pretrained_cfg", None) or {}
    width = getattr(body, "head_hidden_size", None) or body.num_features
    side = config.get("input_size", (3, 224, 224))[-1] if size == "auto" else check_size(size)
    mean, std = config.get("mean", IMAGENET_MEAN), config.get("std", IMAGENET_STD)
    return TimmNetwork(bits, body, int(width), Preprocess(side, mean, std))


def _timm(model: str) -> Any:
    try:
        return import_module("timm")
    except Exception as problem:  # next to a torch it was not built for, torchvision raises errors of all kinds
        raise MissingExtraError(
            f"network 'timm:{model}' needs timm, which does not import here ({first_line(problem)}): pip install timm"
        ) from None
