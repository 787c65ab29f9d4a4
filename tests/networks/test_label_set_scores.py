"""A last layer for label sets: the sums of the scores of their labels, and a bias of each set."""

import pytest
import torch
from torch import nn

from adsh.errors import InputError
from adsh.networks import create_network
from adsh.networks.label_set_scores import LabelSetScores
from adsh.networks.posterior import with_posterior

from ..export.test_onnx import BITS, check_parity

MEMBERS = torch.tensor([[1.0, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]])
COUNT = torch.tensor([5, 1, 2, 2])


def test_a_score_is_the_sum_of_the_labels_scores_and_the_bias_of_the_set():
    torch.manual_seed(0)
    head = LabelSetScores(6, 3, 4)
    head.set_label_sets(MEMBERS, COUNT)
    x = torch.randn(7, 6)
    labels = x @ head.weight.T + head.bias
    for at, names in enumerate([[0], [0, 1], [1, 2], [2]]):
        expected = sum(labels[:, name] for name in names) + (COUNT[at] / 10).log()
        torch.testing.assert_close(head(x)[:, at], expected)
    torch.testing.assert_close(head.set_weights[1], head.weight[0] + head.weight[1])


def test_it_learns_which_labels_come_together():
    torch.manual_seed(0)
    head = LabelSetScores(2, 3, 4)
    head.set_label_sets(MEMBERS, COUNT)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.1)
    classes = torch.arange(4).repeat(50)
    x = torch.zeros(200, 2)  # nothing to be seen: only how often each set occurs
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(x), classes).backward()
        optimizer.step()
    torch.testing.assert_close(head(x[:1]).softmax(dim=1), torch.full((1, 4), 0.25), atol=0.01, rtol=0)


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [("mlp", (12,), {}), ("linear", (12,), {}), ("frozen:dsh_net", (24, 24, 3), {"hidden": 16, "weights": None})],
)
def test_it_is_exported_to_the_same_bits(name, shape, options):
    torch.manual_seed(0)
    network = create_network(name, BITS, shape, classes=3, label_sets=4, **options)
    posterior = network.top if hasattr(network, "top") else network
    posterior.network.head.set_label_sets(MEMBERS, COUNT)
    posterior.codes.copy_(torch.randn(4, BITS))
    check_parity(network, shape, mirror=len(shape) == 3)


def test_a_spec_creates_the_same_network():
    network = create_network("mlp", 8, (6,), classes=3, label_sets=4)
    again = create_network(network.adsh_spec["name"], 8, (6,), **network.adsh_spec["options"])
    assert {n: t.shape for n, t in again.state_dict().items()} == {n: t.shape for n, t in network.state_dict().items()}


def test_a_network_without_a_linear_last_layer_is_refused():
    with pytest.raises(InputError, match="last layer is linear"):
        with_posterior(nn.Sequential(nn.Linear(6, 3), nn.Tanh()), 3, 8, 1.0, label_sets=4)
