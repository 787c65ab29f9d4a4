"""What is chosen for whom says nothing, and who is warned."""

from __future__ import annotations

import warnings

import pytest

from adsh.errors import AdshWarning
from adsh.runs import defaults as advice


@pytest.mark.parametrize(
    ("installed", "device", "network", "why"),
    [
        (True, "cpu", "frozen:efficientnet_lite0", "there is no GPU"),
        (True, "cuda", "efficientnet_lite0", "is trained on yours"),
        (False, "cuda", "tiny", "from scratch"),
    ],
)
def test_the_network_depends_on_weights_and_device(monkeypatch, installed, device, network, why):
    monkeypatch.setattr(advice.importlib.util, "find_spec", lambda name: object() if installed else None)
    with pytest.warns(AdshWarning, match=why):
        assert advice.default_network(device) == network


def test_hours_and_poor_sight_are_told_before_training():
    with pytest.warns(AdshWarning, match="training resnet50 on a CPU takes hours"):
        advice.advise("resnet50", (224, 224, 3), "photos", "cpu", given=True)
    with pytest.warns(AdshWarning, match="a pre-trained network sees far more"):
        advice.advise("tiny", (224, 224, 3), "photos", "cpu", given=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advice.advise("tiny", (32, 32, 3), "photos", "cpu", given=False)
        advice.advise("resnet50", (224, 224, 3), "photos", "cuda", given=True)
