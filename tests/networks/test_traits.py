"""What is read of a network beyond its forward: of ours, and of a user's own module."""

import pytest
import torch
from torch import nn

from adsh.networks import create_network
from adsh.networks.traits import traits_of


def test_a_module_of_the_users_own_needs_none_of_them():
    traits = traits_of(nn.Linear(3, 2))
    assert (traits.head, traits.features, traits.preprocess, traits.calibrate, traits.evaluation_batch) == (None,) * 5
    assert (traits.image_size, traits.spec, traits.weights, traits.backbone, traits.capturable) == (*[None] * 4, False)


def test_a_module_of_the_users_own_may_have_them():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.preprocess, self.evaluation_batch = nn.Linear(3, 2), nn.Identity(), 7

        def features(self, x):
            return x

    own = Own()
    traits = traits_of(own)
    assert traits.head is own.head
    assert traits.feature_layer is own.head
    assert traits.features == own.features
    assert traits.evaluation_batch == 7
    assert traits.image_size is None
    assert not traits.capturable


@pytest.mark.parametrize(("name", "size", "capturable"), [("dsh_net", 32, True), ("tiny", None, False)])
def test_networks_of_images_say_what_they_do(name, size, capturable):
    network = create_network(name, 4, (16, 16, 3))
    traits = traits_of(network)
    assert traits.features(torch.rand(2, 3, 16, 16)).shape == (2, network.feature_size)
    assert (traits.image_size, traits.capturable) == (size, capturable)
    assert traits.spec["name"] == name


def test_the_features_of_a_frozen_network_are_what_its_mlp_sees():
    network = create_network("frozen:tiny", 4, (16, 16, 3))
    assert traits_of(network).feature_layer is network.top
    assert traits_of(network).head is None
    assert traits_of(create_network("mlp", 4, (5,))).calibrate is not None
