"""Folders of models that somebody changed on purpose: loading one takes what its weights take, and fetches nothing."""

import json
import sys
import types

import pytest

import adsh
from adsh.errors import AdshError


@pytest.fixture
def folder(blobs, tmp_path):
    adsh.ADSH(12, network="mlp", network_options={"hidden": 8}, outer=1, samples=60, device="cpu").fit(*blobs).save(
        tmp_path / "m"
    )
    return tmp_path / "m"


def change(folder, **network):
    config = json.loads((folder / "config.json").read_text())
    config["network"] = {**config["network"], **network}
    (folder / "config.json").write_text(json.dumps(config))


def refused(folder):
    with pytest.raises(AdshError) as raised:
        adsh.load(folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("hidden", [10**13, 10**18, -1])
def test_a_layer_larger_than_its_weights_is_refused_before_it_takes_memory(folder, hidden):
    change(folder, options={"hidden": hidden})  # 10^13 units would take a petabyte
    assert "do not fit the network" in refused(folder)


@pytest.mark.parametrize("hidden", [2**70, 1.5, "many", None, [], {}])
def test_options_of_another_kind_are_refused_in_one_line(folder, hidden):
    change(folder, options={"hidden": hidden})
    refused(folder)


def test_an_input_larger_than_the_weights_is_refused_before_it_takes_memory(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"input_shape": [10**13]}))
    assert "do not fit the network" in refused(folder)


@pytest.mark.parametrize("name", ["timm:hf-hub:someone/network", "frozen:timm:hf-hub:someone/network"])
def test_no_network_is_fetched_while_a_model_is_loaded(folder, name, monkeypatch):
    calls = []
    monkeypatch.setitem(
        sys.modules, "timm", types.SimpleNamespace(create_model=lambda *given, **_: calls.append(given))
    )
    change(folder, name=name, options={})
    assert "fetches nothing" in refused(folder)
    assert calls == []


@pytest.mark.parametrize("options", [{}, {"weights": "pretrained"}], ids=["by default", "by request"])
def test_no_published_weights_are_loaded_into_a_saved_network(folder, options, monkeypatch):
    calls = []
    timm = types.SimpleNamespace(create_model=lambda *_, pretrained, **__: calls.append(pretrained))
    monkeypatch.setitem(sys.modules, "timm", timm)
    config = json.loads((folder / "config.json").read_text())
    config["network"] = {"name": "timm:known", "options": options}
    config["input_shape"] = [8, 8, 3]
    (folder / "config.json").write_text(json.dumps(config))
    refused(folder)
    assert calls == [False]


def test_no_path_in_the_config_of_a_model_is_opened(folder, blobs, monkeypatch):
    expected = adsh.load(folder).encode(blobs[0])

    def opened(*given):
        raise AssertionError(f"opened {given[-1]}")

    monkeypatch.setattr("adsh.networks.registry.load_weights", opened)
    change(folder, options={"hidden": 8, "weights": "/etc/passwd"})
    assert (adsh.load(folder).encode(blobs[0]) == expected).all()
