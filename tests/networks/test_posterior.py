"""The posterior head: the code of the least expected Hamming distance, and its mean as output."""

import itertools

import numpy as np
import pytest
import torch

from adsh.networks import create_network
from adsh.networks.class_lookup import split_scores
from adsh.networks.posterior import Posterior

from ..export.test_onnx import BITS, check_parity


def with_codes(network, rng):
    head = network.top if hasattr(network, "top") else network
    assert isinstance(head, Posterior)
    head.codes.copy_(torch.as_tensor(rng.choice([-1.0, 1.0], size=head.codes.shape)))
    return network


def test_no_code_has_a_smaller_expected_distance():
    rng = np.random.default_rng(0)
    network = with_codes(create_network("linear", 5, (6,), classes=4, temperature=1.5), rng).eval()
    x = torch.as_tensor(rng.normal(size=(50, 6)), dtype=torch.float32)
    codes = network.codes.numpy()
    with torch.inference_mode():
        found = torch.sign(network(x)).numpy()
        posterior = torch.softmax(split_scores(network)[0](x) / 1.5, dim=1).numpy()
    every = np.array(list(itertools.product([-1, 1], repeat=5)))
    expected = posterior @ (every[None] != codes[:, None]).sum(axis=2)  # (50, 32) over all codes
    own = (posterior * (found[:, None] != codes).sum(axis=2)).sum(axis=1)
    np.testing.assert_allclose(own, expected.min(axis=1), atol=1e-5)


def test_the_output_is_the_posterior_mean():
    rng = np.random.default_rng(1)
    network = with_codes(create_network("mlp", 8, (6,), classes=3), rng).eval()
    x = torch.as_tensor(1e3 * rng.normal(size=(20, 6)), dtype=torch.float32)  # far out: some posteriors are 0 and 1
    with torch.inference_mode():
        posterior = torch.softmax(split_scores(network)[0](x), dim=1)
        np.testing.assert_allclose(torch.tanh(network(x)), posterior @ network.codes, atol=1e-5)


def test_weights_that_differ_give_codes_between_two_classes_grades_and_leave_sure_items_their_code():
    codes = np.tile([[1.0], [-1.0]], (1, 16)).astype(np.float32)
    network = create_network("linear", 16, (1,), classes=2).eval()
    weights = np.exp(np.random.default_rng(0).normal(size=codes.shape)).astype(np.float32)
    network.codes.copy_(torch.as_tensor(weights * codes))
    p = np.array([0.001, 0.2, 0.35, 0.5, 0.65, 0.8, 0.999], dtype=np.float32)
    with torch.inference_mode():
        outputs = torch.tanh(network.decide(torch.as_tensor(np.log(np.stack([p, 1 - p], axis=1))))).numpy()
    ones = (outputs > 0).sum(axis=1)
    assert ones[0] == 0
    assert ones[-1] == 16
    assert (np.diff(ones) >= 0).all()
    assert len(set(ones)) > 4
    mean = (p[3] * weights[0] - (1 - p[3]) * weights[1]) / (p[3] * weights[0] + (1 - p[3]) * weights[1])
    np.testing.assert_allclose(outputs[3], mean, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("mlp", (12,), {}),
        ("frozen:dsh_net", (24, 24, 3), {"hidden": 16, "weights": None}),
        ("tiny", (21, 21, 3), {}),
    ],
)
def test_it_is_exported_to_the_same_bits(name, shape, options):
    torch.manual_seed(0)
    network = create_network(name, BITS, shape, classes=30, temperature=1.2, **options)
    check_parity(with_codes(network, np.random.default_rng(0)), shape, mirror=len(shape) == 3)


def test_a_spec_creates_the_same_network():
    network = create_network("mlp", 8, (6,), classes=2000, temperature=1.25)
    again = create_network(network.adsh_spec["name"], 8, (6,), **network.adsh_spec["options"])
    assert again.temperature == 1.25
    assert {n: t.shape for n, t in again.state_dict().items()} == {n: t.shape for n, t in network.state_dict().items()}
