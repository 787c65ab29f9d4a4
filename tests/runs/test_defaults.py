"""The network that is chosen where none is given, and the warnings before training."""

from __future__ import annotations

import warnings

import pytest

from adsh.errors import AdshWarning
from adsh.runs import defaults


@pytest.mark.parametrize(
    ("installed", "device", "network", "reason"),
    [
        (True, "cpu", "frozen:efficientnet_lite0", "there is no GPU"),
        (True, "cuda", "efficientnet_lite0", "pre-trained on ImageNet"),
        (False, "cuda", "tiny", "from scratch"),
    ],
)
def test_the_network_depends_on_weights_and_device(monkeypatch, installed, device, network, reason):
    monkeypatch.setattr(defaults.importlib.util, "find_spec", lambda name: object() if installed else None)
    with pytest.warns(AdshWarning, match=reason):
        assert defaults.default_network(device) == network


def test_long_runs_and_weak_networks_are_warned_of_before_training():
    with pytest.warns(AdshWarning, match="training resnet50 on a CPU takes hours"):
        defaults.advise("resnet50", (224, 224, 3), "photos", "cpu", explicit=True)
    with pytest.warns(AdshWarning, match="pre-trained on ImageNet gives far better codes"):
        defaults.advise("tiny", (224, 224, 3), "photos", "cpu", explicit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        defaults.advise("tiny", (32, 32, 3), "photos", "cpu", explicit=False)
        defaults.advise("resnet50", (224, 224, 3), "photos", "cuda", explicit=True)
