"""What the image networks have in common: preprocessing, features, and the hash layer on top."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from torch import Tensor, nn


class Backbone(nn.Module):
    """(b, channels, H, W) images in 0 .. 1 to (b, bits), by way of (b, feature_size) features.

    A subclass sets `preprocess`, the layers and `head`, and computes the features of preprocessed images in `body`.
    `renames` (pairs of a pattern and its replacement) turns the names in published weight files into those of the
    subclass; `replaced` is the prefix of their last layer, whose place the hash layer takes.
    """

    renames: ClassVar[Sequence[tuple[str, str]]] = ()
    replaced: ClassVar[str] = "fc."
    replays: ClassVar[bool] = True  # a step can be captured as a CUDA graph: it neither waits for the GPU nor branches

    preprocess: nn.Module
    head: nn.Linear

    @property
    def feature_size(self) -> int:
        """The number of features of an image."""
        return self.head.in_features

    @property
    def evaluation_batch(self) -> int:
        """How many images to encode at once: activations of large images fill the memory of a small machine."""
        return 512 if self.head.weight.is_cuda else 32

    def body(self, x: Tensor) -> Tensor:
        """Return the features of preprocessed images."""
        raise NotImplementedError

    def features(self, x: Tensor) -> Tensor:
        """Return (b, feature_size), the inputs of the last layer. Call `eval()` first for features to keep."""
        return self.body(self.preprocess(x))

    def forward(self, x: Tensor) -> Tensor:
        """Return F(x), (b, bits)."""
        out: Tensor = self.head(self.features(x))
        return out


def call_in_files(network: nn.Module, attribute: str, name: str) -> None:
    """Call the module `attribute` of a network by another `name` in its state dicts, both saved and loaded.

    For published names that mean something else here: torchvision's `features` are the convolutions alone.

    Args:
        network: the network.
        attribute: the module's name here.
        name: its name in files.
    """
    network.register_state_dict_post_hook(partial(_renamed, attribute, name))  # type: ignore[no-untyped-call]  # torch leaves it untyped
    network.register_load_state_dict_pre_hook(partial(_renamed, name, attribute))  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _renamed(old: str, new: str, _: nn.Module, state: dict[str, Any], prefix: str, *__: object) -> None:
    """Replace the prefix `old` of names by `new`, in place and in order.

    Args:
        old, new: the names of a module of the network.
        state: a state dict, which is changed.
        prefix: the network's own prefix in it.
    """
    items, start = list(state.items()), f"{prefix}{old}."
    state.clear()
    for name, tensor in items:
        state[f"{prefix}{new}.{name.removeprefix(start)}" if name.startswith(start) else name] = tensor


def start_convolutions(network: nn.Module) -> None:
    """Initialise convolutions by Kaiming's rule with fan-out, and norms at 1 and 0."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            # grouped: only the outputs that one input value reaches
            fan_out = layer.kernel_size[0] * layer.kernel_size[1] * layer.out_channels // layer.groups
            nn.init.normal_(layer.weight, std=(2 / fan_out) ** 0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.BatchNorm2d):
            nn.init.ones_(layer.weight)
            nn.init.zeros_(layer.bias)
