"""Steps recorded on a GPU and replayed; and what is done where that does not work, which needs none."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import adsh
from adsh.config import Recipe
from adsh.errors import AdshWarning
from adsh.networks import create_network
from adsh.networks.class_lookup import Lookup
from adsh.networks.timm import TimmNetwork
from adsh.train.cuda_graph import CapturedNetwork, can_be_captured
from adsh.train.step import Step

CPU = torch.device("cpu")


class Fake:
    """Takes the place of a recording, and moves what one moves."""

    closed = 0

    def __init__(self, network, inputs, *, bf16):
        network(inputs)  # moves the statistics of batch norm
        self.network = network

    def __call__(self, inputs):
        return self.network(inputs)

    def close(self):
        Fake.closed += 1


@pytest.fixture
def prepared(monkeypatch):
    """A step on a CPU that thinks it may record, and prepares for batches of these sizes."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr("adsh.train.step.CapturedNetwork", Fake)
    monkeypatch.setattr(Fake, "closed", 0)

    def warm_up(*sizes):
        network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 6), torch.nn.BatchNorm1d(6))
        step = Step(network, Recipe(outer=1, inner=1, compile="graph"), 1, CPU)
        step._captures = True
        before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        for size in sizes:
            step.warm_up(torch.rand(size, 3, 2, 2), size)
        assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
        assert all(p.grad is None for p in network.parameters())
        return step

    return warm_up


def test_what_is_captured_leaves_no_trace_and_is_released(prepared):
    step = prepared(4, 3)
    assert isinstance(step._forward, Fake)
    step.close()
    assert step._forward is step.network
    assert Fake.closed == 1


@pytest.mark.parametrize("problem", [RuntimeError("no stream"), torch.OutOfMemoryError("full")])
def test_where_nothing_can_be_captured_steps_are_taken_as_they_are(prepared, monkeypatch, problem):
    class Failing(Fake):
        def __init__(self, network, inputs, *, bf16):
            super().__init__(network, inputs, bf16=bf16)
            raise problem

    monkeypatch.setattr("adsh.train.step.CapturedNetwork", Failing)
    with pytest.warns(AdshWarning, match=rf"CUDA graphs do not work here \({problem}\): steps take longer"):
        step = prepared(4)
    assert step._forward is step.network


def test_a_recording_that_leaves_too_little_memory_for_the_last_batch_is_given_up(prepared, monkeypatch):
    plain, tried = Step._outputs, []

    def outputs(self, inputs, count):
        tried.append(len(inputs))
        if len(inputs) == 3 and isinstance(self._forward, Fake):
            raise torch.OutOfMemoryError("full")
        return plain(self, inputs, count)

    monkeypatch.setattr(Step, "_outputs", outputs)
    with pytest.warns(AdshWarning, match="CUDA graphs do not work here"):
        step = prepared(4, 3)
    assert step._forward is step.network
    assert Fake.closed == 1
    assert tried == [4] * 3 + [3] * 4


def test_a_step_that_fails_as_it_is_fails(prepared, monkeypatch):
    monkeypatch.setattr(Step, "_outputs", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("full")))
    with pytest.warns(AdshWarning, match="CUDA graphs"), pytest.raises(torch.OutOfMemoryError):
        prepared(4)


@pytest.fixture
def records(monkeypatch):
    """torch's recording on a CPU: what it puts in the place of `forward` writes to one memory, as a replay does."""
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "its own")
    streams = []
    monkeypatch.setattr(torch.cuda, "set_stream", streams.append)

    def record(module, samples, *, allow_unused_input):
        plain, memory = module.forward, torch.zeros(len(samples[0]), 6)
        module.forward = lambda inputs: _Written.apply(plain(inputs), memory)

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", record)
    return streams


class _Written(torch.autograd.Function):
    @staticmethod
    def forward(ctx, outputs, memory):
        return memory.copy_(outputs).detach()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def test_a_recording_gives_outputs_that_stay_and_leaves_the_network_as_it_was(records):
    network, images = torch.nn.Linear(3, 6), torch.rand(4, 3)
    captured = CapturedNetwork(network, images, bf16=False)
    one, other = captured(images), captured(2 * images)
    assert torch.equal(one, network(images))  # the second did not write over it
    assert not torch.equal(one, other)
    captured.close()
    captured.close()
    assert "forward" not in network.__dict__
    assert "forward" not in captured._passes.__dict__
    assert records == []


def test_a_recording_that_fails_puts_the_stream_back(records, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("operation not permitted")

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", fail)
    with pytest.raises(RuntimeError, match="not permitted"):
        CapturedNetwork(torch.nn.Linear(3, 6), torch.rand(4, 3), bf16=False)
    assert records == ["its own"]


@pytest.mark.parametrize(
    ("name", "device", "current", "can"),
    [
        ("dsh_net", "cuda", 0, True), ("dsh_net", "cuda:0", 0, True), ("dsh_net", "cuda:1", 0, False),
        ("dsh_net", "cuda:1", 1, False), ("dsh_net", "cpu", 0, False), ("mlp", "cuda", 0, False),
    ],
)  # fmt: skip
def test_only_networks_that_are_known_and_only_the_first_gpu_record(monkeypatch, name, device, current, can):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
    network = create_network(name, 6, (32, 32, 3) if name == "dsh_net" else (4,))
    assert can_be_captured(network, torch.device(device)) is can
    assert can_be_captured(Lookup(network, 6, 8), torch.device(device)) is can
    assert not TimmNetwork.replays


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize(("name", "options"), [("dsh_net", {}), ("alexnet", {"size": 64}), ("resnet18", {"size": 64})])
def test_replayed_steps_are_those_of_the_network_itself(name, options, bf16):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 40)
    images = (rng.integers(0, 256, (160, 32, 32, 3)) // 2 + 30 * labels[:, None, None, None]).astype(np.uint8)
    found = []
    for way in (False, "graph"):
        model = adsh.ADSH(
            16, network=name, network_options={**options, **({"dropout": 0.0} if name == "alexnet" else {})}, seed=1,
            outer=3, samples=112, batch_size=32, recipe={"bf16": bf16, "compile": way, "lr": 1e-4}, device="cuda",
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("error", AdshWarning)
            model.fit(images, labels)
        found.append([record["loss"] for record in model.history_])
        model.encode(images)  # the network is itself again
    assert found[1] == pytest.approx(found[0], rel=1e-2 if bf16 else 1e-4)
