"""CNN-F from a MatConvNet file in both published layouts, against NumPy written out."""

import numpy as np
import pytest
import torch
from scipy.io import savemat

from adsh import create_network
from adsh.errors import InputError
from adsh.networks.cnn_f import ResponseNorm

from ..reference import networks as reference
from .numbers_by_name import numbers

SHAPES = {
    "conv1": (11, 11, 3, 64),
    "conv2": (5, 5, 64, 256),
    "conv3": (3, 3, 256, 256),
    "conv4": (3, 3, 256, 256),
    "conv5": (3, 3, 256, 256),
    "fc6": (6, 6, 256, 4096),
    "fc7": (1, 1, 4096, 4096),
    "fc8": (1, 1, 4096, 10),  # 1,000 in the published file
}


def cell(values):
    out = np.empty((1, len(values)), dtype=object)
    out[0, :] = values
    return out


@pytest.fixture(scope="module")
def layers():
    """MatConvNet's names to filters and biases."""
    found = {}
    for name, shape in SHAPES.items():
        values = numbers(name, (shape[3], shape[2], shape[0], shape[1])).transpose(2, 3, 1, 0)
        found[name] = values, numbers(f"{name}.bias", (shape[3],))
    return found


@pytest.fixture(scope="module")
def mean():
    return np.random.default_rng(1).uniform(90, 130, (224, 224, 3)).astype(np.float32)


def write(path, layers, mean, old=False, param=(5, 2, 1e-4, 0.75), named=False):
    """As MatConvNet saved them: in old files filters and biases, and normalization outside meta."""
    written = []
    for name, (filters, biases) in layers.items():
        both = (
            {"filters": filters, "biases": biases[None]}
            if old
            else {"weights": cell([filters, biases[:, None]]), "pad": [0, 0, 0, 0], "stride": [1, 1]}
        )
        written.append({"name": name, "type": "conv", **both})
        written.append({"name": f"relu{name[-1]}", "type": "relu"})
        if name in ("conv1", "conv2"):
            written.append({"name": f"norm{name[-1]}", "type": "normalize" if old else "lrn", "param": list(param)})
            written.append({"name": f"pool{name[-1]}", "type": "pool", "method": "max", "pad": [0, 1, 0, 1]})
    normalization = {"imageSize": [224, 224, 3], "averageImage": mean, "interpolation": "bicubic"}
    rest = {"normalization": normalization} if old else {"meta": {"normalization": normalization}}
    content = {"layers": cell(written), **rest}
    savemat(path, {"net": content} if named else content)
    return path


def test_the_published_layout_loads_and_gives_the_features_written_out(layers, mean, tmp_path):
    path = write(tmp_path / "imagenet-vgg-f.mat", layers, mean)
    network = create_network("cnn_f", 8, (224, 224, 3), weights=path).eval()
    report = network.adsh_weights
    assert report.complete
    assert set(report.unused) == {"fc8.weight", "fc8.bias"}
    pixels = np.random.default_rng(2).integers(0, 256, (224, 224, 3)).astype(np.float32)
    with torch.inference_mode():
        found = network.features(torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255)[0].numpy()
    expected = reference.cnn_f(pixels, layers, mean)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    assert network.feature_size == 4096


def test_normalisation_is_matconvnets_which_is_torchs_with_alpha_times_the_channels():
    x = torch.from_numpy(np.random.default_rng(0).uniform(0, 300, (1, 8, 2, 2)))
    right = reference.matconvnet_lrn(x[0].numpy(), 5, 2, 1e-4, 0.75)
    found = ResponseNorm()(x)
    assert np.allclose(found[0].numpy(), right, rtol=1e-6)
    assert torch.allclose(found, torch.nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2)(x), rtol=1e-6)
    assert not torch.allclose(found, torch.nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=2)(x), rtol=0.05)


def test_the_old_layout_loads_the_same(layers, mean, tmp_path):
    few = {name: layers[name] for name in ("conv1", "conv2", "conv3")}
    with pytest.warns(UserWarning, match="not filled: .*linear.0.weight"):
        new = create_network("cnn_f", 8, (224, 224, 3), weights=write(tmp_path / "new.mat", few, mean))
    with pytest.warns(UserWarning, match="not filled"):
        old = create_network("cnn_f", 8, (224, 224, 3), weights=write(tmp_path / "old.mat", few, mean, old=True))
    for name in new.adsh_weights.filled:
        assert torch.equal(new.state_dict()[name], old.state_dict()[name]), name
    assert np.array_equal(new.preprocess.mean.numpy(), mean.transpose(2, 0, 1))
    with pytest.warns(UserWarning, match="not filled"):
        free = create_network("cnn_f", 8, (64, 64, 3), weights=tmp_path / "new.mat", size=None)
    assert free.preprocess.mean.flatten().numpy() == pytest.approx(mean.mean((0, 1)), rel=1e-4)


def test_a_retrained_network_brings_its_own_normalisation(layers, mean, tmp_path):
    path = write(tmp_path / "n.mat", {"conv1": layers["conv1"]}, mean, param=(5, 1, 2e-5, 0.75), named=True)
    with pytest.warns(UserWarning, match="not filled"):
        network = create_network("cnn_f", 8, (32, 32, 3), weights=path)
    assert network.state_dict()["convolutions.2.values"].tolist() == pytest.approx([1, 2e-5, 0.75])
    assert np.array_equal(network.preprocess.mean.numpy(), mean.transpose(2, 0, 1))


def test_another_file_is_refused(layers, mean, tmp_path):
    few = {"conv1": layers["conv1"]}
    with pytest.raises(InputError, match="layer norm1 has param"):
        create_network("cnn_f", 8, (32, 32, 3), weights=write(tmp_path / "a.mat", few, mean, param=(9, 1, 1e-4, 0.75)))
    with pytest.raises(InputError, match="only cnn_f reads"):
        create_network("alexnet", 8, (32, 32, 3), weights=tmp_path / "a.mat")
    wrong = {"conv1": (layers["conv1"][0][:7, :7], layers["conv1"][1])}
    with pytest.raises(InputError, match=r"convolutions.0.weight in b.mat has shape \(64, 3, 7, 7\)"):
        create_network("cnn_f", 8, (32, 32, 3), weights=write(tmp_path / "b.mat", wrong, mean))
    (tmp_path / "c.mat").write_bytes(b"no matrices here")
    with pytest.raises(InputError, match="c.mat"):
        create_network("cnn_f", 8, (32, 32, 3), weights=tmp_path / "c.mat")
