"""A classifier as a hash function: it decides by the mean over an image and its flipped copy, and for one class."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import adsh
from adsh.hamming.bits import unpack
from adsh.methods import create
from adsh.networks import create_network
from adsh.networks.class_lookup import Lookup
from adsh.train.forward import network_outputs

from ..train.loaders import InMemory


@pytest.fixture
def halves_that_disagree():
    """A network that sees the left half of an image and the right half apart, and images on which they disagree."""
    torch.manual_seed(0)
    images = torch.rand(40, 3, 8, 8)
    network = Lookup(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5)), 5, 12)
    network.codes.copy_(torch.randn(5, 12).sign())
    return network.eval(), images


def test_a_flipped_query_gets_the_code_of_one_class(halves_that_disagree):
    network, images = halves_that_disagree
    plain, flipped = (network.network(x).detach() for x in (images, images.flip(-1)))
    assert (plain.argmax(1) != flipped.argmax(1)).any()
    found = torch.cat(list(network_outputs(network, InMemory(images), range(40), flip_tta=True)))
    expected = network.codes[(plain + flipped).argmax(1)]
    assert torch.equal(found, torch.tanh(expected))


def test_a_classifier_of_images_gives_no_codes_but_those_of_its_classes():
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (120, 8, 8, 3), dtype=np.uint8), np.arange(120) % 6
    model = create("classifier", bits=16, network="tiny", outer=2, recipe={"flip_tta": True}, progress=False)
    model.fit(images, labels)
    known = {tuple(code) for code in model.network_.codes.numpy().astype(int)}
    assert {tuple(code) for code in unpack(model.encode(images), 16).astype(int)} <= known


def test_the_wrapped_network_says_how_many_images_at_once(monkeypatch):
    network = create_network("dsh_net", 4, (32, 32, 3))
    wrapper = Lookup(network, 4, 8)
    assert wrapper.evaluation_batch == 32
    monkeypatch.setattr(type(network), "evaluation_batch", property(lambda self: 512))  # as once it is on a GPU
    assert wrapper.evaluation_batch == 512
    assert not hasattr(Lookup(torch.nn.Linear(2, 2), 2, 8), "evaluation_batch")


def test_a_preset_that_collects_outputs_anew_gets_scores(tmp_path):
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 6)), np.arange(60) % 5
    model = create("classifier", bits=12, network="linear", preset="paper", outer=2, progress=False)
    assert len(np.unique(model.fit(features, labels).database_codes_, axis=0)) <= 5


def test_a_classifier_with_a_module_of_ones_own_is_loaded_with_it(tmp_path):
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 6)).astype(np.float32), np.arange(60) % 3
    model = create("classifier", bits=8, network=torch.nn.Linear(6, 3), outer=2, progress=False).fit(features, labels)
    model.save(tmp_path / "model")
    again = adsh.load(tmp_path / "model", network=torch.nn.Linear(6, 3))
    assert np.array_equal(again.encode(features), model.encode(features))
