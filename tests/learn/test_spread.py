"""One run on several processes: the codes of one process bit for bit, its weights within 1e-5."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.multiprocessing

from adsh.errors import InputError
from adsh.learn.spread import World
from adsh.learn.whole_batch import WholeBatch

from .spread_cases import CASES, all_cases, ended

SIZES = (2, 4)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Every case, run by 2 and by 4 processes."""
    folder = tmp_path_factory.mktemp("spread")
    for size in SIZES:
        torch.multiprocessing.spawn(all_cases, (size, folder), nprocs=size)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_any_number_of_processes_gives_the_codes_and_weights_of_one(runs, case):
    one = ended(case)
    for size in SIZES:
        first = dict(np.load(runs / f"{case}-{size}-0.npz"))
        np.testing.assert_array_equal(first["codes"], one["codes"])
        for name in one:
            np.testing.assert_allclose(first[name], one[name], atol=1e-5, rtol=1e-5, err_msg=name)
        for rank in range(1, size):
            other = dict(np.load(runs / f"{case}-{size}-{rank}.npz"))
            assert all(np.array_equal(other[name], first[name]) for name in one), "the processes differ"


def test_shares_are_in_order_and_cover_every_row_once():
    for size in (1, 2, 3, 4, 7):
        for count in range(20):
            rows = [np.arange(count)[World(rank, size).share(count)] for rank in range(size)]
            np.testing.assert_array_equal(np.concatenate(rows), np.arange(count))
            assert max(map(len, rows)) - min(map(len, rows)) <= 1


def test_a_gpu_each_or_an_error_that_says_how_many_there_are(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert World(1, 2).device(torch.device("cuda")) == torch.device("cuda", 1)
    assert World(1, 2).device(torch.device("cuda:0")) == torch.device("cuda", 0)  # as asked for
    assert World(1, 2).device(torch.device("cpu")) == torch.device("cpu")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(InputError, match="4 processes on this host, but torch finds 2 GPUs"):
        World(1, 4).device(torch.device("cuda"))


def test_alone_nothing_is_copied_or_sent():
    rows = torch.randn(3, 2)
    assert World().gather(rows, 3) is rows
    assert World().total(rows) is rows
    assert World().from_first(lambda: 5) == 5


def test_batch_norm_of_a_whole_batch_is_torch_s():
    torch.manual_seed(0)
    images = torch.randn(6, 3, 4, 4, dtype=torch.float32)
    plain, whole = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)
    results = []
    for norm in (plain, whole):
        inputs = images.clone().requires_grad_()
        if norm is whole:
            with WholeBatch(slice(0, 6), 6, lambda values: values):
                out = norm(inputs)
        else:
            out = norm(inputs)
        (out**3).sum().backward()
        results.append((out.detach(), inputs.grad, norm.weight.grad, norm.running_mean, norm.running_var))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
