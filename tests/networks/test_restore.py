"""A network created from saved tensors is the one that was saved, to the last bit and the order in memory."""

import pytest
import torch
from torch import nn

from adsh.networks import NETWORKS, create_network
from adsh.networks.restore import build_with_tensors

QUICK = (
    "linear",
    "mlp",
    "tiny",
    "dsh_net",
    "resnet18",
    "efficientnet_lite0",
    "frozen:tiny",
    "frozen:efficientnet_lite0",
)
REST = [name for name in (*NETWORKS, "frozen:resnet50", "frozen:alexnet") if name not in QUICK]


def all_tensors(network):
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


def check(build):
    torch.manual_seed(5)
    saved = build()
    restored = build_with_tensors(build, {name: tensor.clone() for name, tensor in saved.state_dict().items()})
    left, right = all_tensors(saved), all_tensors(restored)
    assert left.keys() == right.keys()
    for name, tensor in left.items():
        assert torch.equal(tensor, right[name]), name
        assert tensor.stride() == right[name].stride(), name
        assert tensor.dtype == right[name].dtype, name
        assert tensor.requires_grad == right[name].requires_grad, name
        assert right[name].device.type == "cpu", name


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in REST)])
def test_a_network_comes_back_as_it_was(name):
    shape = (20,) if name in ("linear", "mlp") else (32, 32, 3)
    check(lambda: create_network(name, 12, shape, weights=None))


def test_tensors_that_a_network_computes_and_does_not_save_come_back():
    class Computes(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)
            self.register_buffer("table", torch.arange(4.0), persistent=False)

    check(Computes)


def test_tensors_of_another_shape_or_name_take_no_memory():
    with pytest.raises(RuntimeError, match="size mismatch"):
        build_with_tensors(lambda: nn.Linear(10**12, 10**3), {"weight": torch.zeros(2, 2), "bias": torch.zeros(2)})
    with pytest.raises(RuntimeError, match="Missing key"):
        build_with_tensors(lambda: nn.Linear(10**12, 10**3), {"bias": torch.zeros(10**3)})
