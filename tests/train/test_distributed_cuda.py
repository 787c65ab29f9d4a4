"""The messages between processes by NCCL, on the one GPU at hand: a group of one that speaks all the same."""

import numpy as np
import pytest
import torch
import torch.distributed as dist

import adsh
from adsh.train.distributed import ProcessGroup

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture
def nccl(monkeypatch):
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    monkeypatch.setattr(ProcessGroup, "is_single", property(lambda self: False))
    yield
    dist.destroy_process_group()


def trained(images, labels):
    recipe = {"outer": 3, "samples": 96, "batch_size": 32, "bf16": False, "compile": False}
    return adsh.ADSH(16, network="tiny", recipe=recipe, seed=1, device="cuda").fit(images, labels)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 40)
    images = rng.integers(0, 256, (160, 16, 16, 3)) // 2 + 30 * labels[:, None, None, None]
    return images.astype(np.uint8), labels


def test_a_group_of_one_learns_as_one_alone(data, request):
    alone = [record["loss"] for record in trained(*data).history_]
    request.getfixturevalue("nccl")
    distributed = [record["loss"] for record in trained(*data).history_]
    assert distributed == pytest.approx(alone, rel=0.02)  # batch norm is another kernel there, and rounds otherwise


def test_messages(nccl):
    group = ProcessGroup.current()
    values = torch.arange(5.0)
    assert group.sum(values.cuda()).cpu().tolist() == values.tolist()
    assert group.sum(values.clone()).tolist() == values.tolist()  # by way of the GPU, and back
    assert group.broadcast_from_rank0(lambda: {"a": 1}) == {"a": 1}
    group.assert_equal_across_ranks(3, "unlike")
