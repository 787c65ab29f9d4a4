import numpy as np
import pytest
import torch

from adsh import create_network
from adsh.errors import InputError
from adsh.networks import NETWORKS


@pytest.mark.parametrize(
    ("name", "shape"), [("linear", (5,)), ("mlp", (5,)), ("tiny", (8, 8, 3)), ("tiny", (40, 28, 1))]
)
def test_a_network_by_name_gives_one_output_a_bit(name, shape):
    network = create_network(name, 12, shape).eval()
    batch = torch.rand((2, *shape)) if len(shape) == 1 else torch.rand((2, shape[2], shape[0], shape[1]))
    assert network(batch).shape == (2, 12)


def test_features_of_any_scale_are_standardised():
    network = create_network("linear", 4, (3,))
    sample = torch.tensor(np.random.default_rng(0).normal(size=(500, 3)) * [2e4, 1e4, 0.0] + [5.0, 1e6, 7.0])
    network.calibrate(sample)
    out = network.standardize(sample)
    assert torch.allclose(out.mean(dim=0), torch.zeros(3, dtype=torch.float64), atol=1e-2)
    assert abs(float(out.var(dim=0, correction=0).mean()) - 1) < 1e-3
    assert 0.6 < out[:, 1].std() < out[:, 0].std() < 1.6
    before = out[:, 1].std() / out[:, 0].std()
    network.standardize.points = 100_000  # with many points, dimensions are nearly level
    network.calibrate(sample)
    out = network.standardize(sample)
    assert before + 0.03 < out[:, 1].std() / out[:, 0].std() < 1
    network.calibrate(torch.full((4, 3), 2.0))  # nothing varies
    assert not network.standardize(torch.full((4, 3), 2.0)).any()


def test_noise_is_added_in_training_only():
    network = create_network("mlp", 8, (5,), noise=0.5)
    x = torch.zeros(2, 5)
    assert not torch.equal(network(x), network(x))
    network.eval()
    assert torch.equal(network(x), network(x))


def test_options_reach_the_network():
    assert create_network("mlp", 8, (5,), hidden=33).hidden.out_features == 33
    with pytest.raises(InputError, match="depth"):
        create_network("mlp", 8, (5,), depth=3)


def test_names_and_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=", ".join(NETWORKS)):
        create_network("alexnot", 8, (5,))
    with pytest.raises(InputError, match="takes features.*use tiny"):
        create_network("mlp", 8, (8, 8, 3))
    with pytest.raises(InputError, match="takes images.*use linear or mlp"):
        create_network("tiny", 8, (64,))
