"""What the image networks have in common: inputs made ready, features, and the hash layer on top."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from torch import Tensor, nn


class Backbone(nn.Module):
    """(b, channels, H, W) images in 0 .. 1 to (b, bits), by way of (b, feature_size) features.

    A subclass sets `preprocess`, the layers and `head`, and says in `body` how prepared images become
    features. `renames` and `replaced` tell how published weight files name things: pairs of a pattern and its
    replacement, and the prefix of the last layer, in whose place the hash layer stands.
    """

    renames: ClassVar[Sequence[tuple[str, str]]] = ()
    replaced: ClassVar[str] = "fc."
    replays: ClassVar[bool] = True  # its passes can be recorded: they ask nothing of the CPU, and branch on nothing

    preprocess: nn.Module
    head: nn.Linear

    @property
    def feature_size(self) -> int:
        """How many numbers `features` gives an image."""
        return self.head.in_features

    @property
    def evaluation_batch(self) -> int:
        """How many images to code at once: activations of large images fill a small machine's memory."""
        return 512 if self.head.weight.is_cuda else 32

    def body(self, x: Tensor) -> Tensor:
        """Features of prepared images."""
        raise NotImplementedError

    def features(self, x: Tensor) -> Tensor:
        """(b, feature_size): what the last layer sees. Call `eval()` first for features to keep."""
        return self.body(self.preprocess(x))

    def forward(self, x: Tensor) -> Tensor:
        """F(x)."""
        out: Tensor = self.head(self.features(x))
        return out


def call_in_files(network: nn.Module, attribute: str, name: str) -> None:
    """Has state dicts of `network`, given and taken, call its module `attribute` by another `name`.

    For published names that are taken here: torchvision's `features` are the convolutions alone.
    """
    network.register_state_dict_post_hook(partial(_renamed, attribute, name))  # type: ignore[no-untyped-call]  # torch leaves it untyped
    network.register_load_state_dict_pre_hook(partial(_renamed, name, attribute))  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _renamed(old: str, new: str, _: nn.Module, state: dict[str, Any], prefix: str, *__: object) -> None:
    """Names that begin with `old` begin with `new`, in place and in order."""
    items, start = list(state.items()), f"{prefix}{old}."
    state.clear()
    for name, tensor in items:
        state[f"{prefix}{new}.{name.removeprefix(start)}" if name.startswith(start) else name] = tensor


def start_convolutions(network: nn.Module) -> None:
    """Kaiming's start for convolutions, by fan-out; norms at 1 and 0."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            # of a grouped convolution, the outputs that one input value reaches
            fan_out = layer.kernel_size[0] * layer.kernel_size[1] * layer.out_channels // layer.groups
            nn.init.normal_(layer.weight, std=(2 / fan_out) ** 0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.BatchNorm2d):
            nn.init.ones_(layer.weight)
            nn.init.zeros_(layer.bias)
