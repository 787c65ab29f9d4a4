"""Folders of models that somebody changed on purpose: loading one takes what its weights take, and fetches nothing."""

import hashlib
import io
import json
import os
import sys
import types

import numpy as np
import pytest
from safetensors.numpy import load_file, save

import adsh
from adsh.errors import AdshError
from adsh.models.info import model_info
from adsh.models.storage_format import holds_model


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
    options = json.loads((folder / "config.json").read_text())["network"]["options"]
    change(folder, options={**options, "weights": "/etc/passwd"})
    assert (adsh.load(folder).encode(blobs[0]) == expected).all()


def rewrite(folder, name, data):
    """Replace a file, with its size and digest in config.json."""
    (folder / name).write_bytes(data)
    config = json.loads((folder / "config.json").read_text())
    config["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "config.json").write_text(json.dumps(config))


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    "numbers",
    [np.full(300, 200, np.uint8), np.full(300, -1, np.int8), np.zeros((3, 3), np.uint8), np.zeros(3, np.float32)],
    ids=["out of range", "negative", "a table", "no integers"],
)
def test_row_numbers_that_name_no_row_are_refused_when_the_model_is_loaded(folder, numbers):
    rewrite(folder, "row_numbers.npy", npy(numbers))
    assert "row_numbers.npy" in refused(folder)


def test_codes_of_another_length_are_refused_when_the_model_is_loaded(folder):
    arrays = load_file(folder / "codes.safetensors")
    arrays["rows.packed"] = np.ascontiguousarray(arrays["rows.packed"][:, :1])
    rewrite(folder, "codes.safetensors", save(arrays))
    assert "does not hold codes of 12 bits" in refused(folder)


def test_a_config_nested_too_deeply_is_refused_in_one_line(folder):
    (folder / "config.json").write_text("[" * 200_000)
    assert "nested too deeply" in refused(folder)
    with pytest.raises(AdshError):
        model_info(folder)
    assert not holds_model(folder)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "row_numbers.npy"])
def test_a_pipe_in_a_model_folder_is_refused_at_once(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert "pipe or a device" in refused(folder)


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': (".ljust(117) + b"\n"])
def test_row_numbers_that_are_no_array_are_refused(folder, data):
    rewrite(folder, "row_numbers.npy", data)
    assert "row_numbers.npy cannot be read as an array" in refused(folder)


@pytest.mark.parametrize("lost", ["trained_on", "params", "history", "recipe", "labels", "adsh_version"])
def test_facts_of_a_config_that_lost_some_are_refused_in_one_line(folder, lost):
    config = json.loads((folder / "config.json").read_text())
    del config[lost]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(AdshError, match="is not a whole adsh model"):
        model_info(folder)
