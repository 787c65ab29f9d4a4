"""What a network has beyond `forward`: read here, and nowhere else.

The networks of this package have most of these attributes, and a user's own `torch.nn.Module` may have any of them:

    head              the last linear layer: it may learn at a rate of its own, and its inputs are the features
    features(x)       (batch, feature_size), what `head` sees
    preprocess        the module that normalises and resizes images; its `size` is the side it resizes to
    calibrate(x)      called once before training, with a batch of inputs
    evaluation_batch  how many items to encode at once
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from .backbone import Backbone

if TYPE_CHECKING:
    from .weights import LoadedWeights


@dataclass(frozen=True)
class NetworkTraits:
    """What one network has; None for what it lacks."""

    head: nn.Module | None
    feature_layer: nn.Module | None  # its input are the features: `head`, or the mlp on a frozen network
    features: Callable[[Tensor], Tensor] | None
    preprocess: nn.Module | None
    calibrate: Callable[[Tensor], None] | None
    evaluation_batch: int | None
    backbone: Backbone | None  # the network itself, where it is one of ours of images: `head` of `features`, always
    renames: Sequence[tuple[str, str]]  # patterns and replacements for the names in published weight files
    replaced: str | None  # the prefix of the last layer in those files
    spec: dict[str, Any] | None  # name and options, of a network that `create_network` created
    weights: LoadedWeights | None  # what it was loaded with

    @property
    def image_size(self) -> int | None:
        """The side that the network resizes images to; None where it takes them as they are."""
        size = getattr(self.preprocess, "size", None)
        return size if isinstance(size, int) else None

    @property
    def capturable(self) -> bool:
        """Whether a training step can be captured as a CUDA graph, so far as the network is known."""
        return self.backbone is not None and self.backbone.replays


def traits_of(network: nn.Module) -> NetworkTraits:
    """Return what a network has, as it is now: `evaluation_batch` depends on the device it is on."""
    head, feature_layer = (
        getattr(network, "head", None),
        getattr(network, "top", None) or getattr(network, "head", None),
    )
    preprocess, features = getattr(network, "preprocess", None), getattr(network, "features", None)
    batch = getattr(network, "evaluation_batch", None)
    return NetworkTraits(
        head=head if isinstance(head, nn.Module) else None,
        feature_layer=feature_layer if isinstance(feature_layer, nn.Module) else None,
        features=features if callable(features) else None,
        preprocess=preprocess,
        calibrate=getattr(network, "calibrate", None),
        evaluation_batch=None if batch is None else int(batch),
        backbone=network if isinstance(network, Backbone) else None,
        renames=getattr(network, "renames", ()),
        replaced=getattr(network, "replaced", None),
        spec=getattr(network, "adsh_spec", None),
        weights=getattr(network, "adsh_weights", None),
    )
