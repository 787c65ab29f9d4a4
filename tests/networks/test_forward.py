"""Each image network against an independent program: torchvision's and timm's (stored), or NumPy written out."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from adsh import create_network
from adsh.networks.weights import fill

from ..reference import networks as reference
from .numbers_by_name import BITS, SIZES, images, names_digest, numbers

EXPECTED = json.loads(Path(__file__).with_name("expectations.json").read_text())

# our names to the published ones
PUBLISHED = {
    "alexnet": (),
    "vgg": (),
    "resnet": (),
    "efficientnet_lite": (
        (r"\.expand\.", "._expand_conv."), (r"\.expand_norm\.", "._bn0."), (r"\.depthwise\.", "._depthwise_conv."),
        (r"\.depthwise_norm\.", "._bn1."), (r"\.project\.", "._project_conv."), (r"\.project_norm\.", "._bn2."),
        (r"^blocks\.", "_blocks."), (r"^stem\.", "_conv_stem."), (r"^stem_norm\.", "_bn0."),
        (r"^last\.", "_conv_head."), (r"^last_norm\.", "_bn1."),
    ),
}  # fmt: skip


def published(name, tensor_name):
    for pattern, replacement in PUBLISHED[re.sub(r"\d", "", name)]:
        tensor_name = re.sub(pattern, replacement, tensor_name)
    return tensor_name


def filled(name, **options):
    """The network with the numbers that the stored expectations were made with, loaded under published names."""
    network = create_network(name, BITS, (96, 80, 3), size=None, weights=None, **options).eval()
    shapes = {
        published(name, own): tuple(tensor.shape)
        for own, tensor in network.state_dict().items()
        if not own.endswith("num_batches_tracked")
    }
    report = fill(network, {n: torch.from_numpy(numbers(n, shape)) for n, shape in shapes.items()}, "numbers")
    assert not report.not_filled
    assert not report.unused
    return network, shapes


def close(found, expected):
    expected = np.asarray(expected, dtype=np.float32)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


QUICK = ("alexnet", "vgg11", "resnet18", "resnet50", "efficientnet_lite0")  # every kind of layer; others have more


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in EXPECTED["networks"]]
)
def test_a_forward_pass_gives_the_stored_numbers(name):
    expected = EXPECTED["networks"][name]
    network, shapes = filled(name)
    assert names_digest(shapes) == expected["names"]
    with torch.inference_mode():
        for number in range(len(SIZES)):
            x = torch.from_numpy(images(number))
            features = network.features(x)
            assert features.shape == (len(x), network.feature_size)
            close(network(x).numpy(), expected["outputs"][number])
            close(features[:, :BITS].numpy(), expected["features"][number])
            assert float(features.double().sum()) == pytest.approx(expected["features_sum"][number], rel=1e-4)


def test_every_network_with_a_published_original_has_expectations():
    from adsh.networks import NETWORKS

    own = {"linear", "mlp", "tiny", "dsh_net", "cnn_f"}
    assert set(EXPECTED["networks"]) == set(NETWORKS) - own


def test_symmetric_padding_differs_only_where_the_side_is_even():
    same, symmetric = filled("efficientnet_lite0")[0], filled("efficientnet_lite0", padding="symmetric")[0]
    odd, even = torch.rand(1, 3, 33, 33), torch.rand(1, 3, 32, 32)  # 33 17 9 5 3 2, odd wherever a stride is 2
    with torch.inference_mode():
        assert torch.equal(same(odd), symmetric(odd))
        assert not torch.allclose(same(even), symmetric(even))


def test_dsh_net_is_the_one_written_out():
    network = create_network("dsh_net", BITS, (32, 32, 3)).eval()
    weights = {name: numbers(name, tensor.shape) for name, tensor in network.state_dict().items()}
    network.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()})
    x = torch.from_numpy(np.random.default_rng(3).random((2, 3, 32, 32), dtype=np.float32))
    with torch.inference_mode():
        found, prepared = network(x).numpy(), network.preprocess(x).numpy()
    close(found, np.stack([reference.dsh_net(image, weights) for image in prepared]))
