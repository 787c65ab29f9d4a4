"""One run on several processes: the codes of one process bit for bit, its weights but for the order of sums."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from adsh.errors import InputError
from adsh.train.batch_sync import BatchSync
from adsh.train.distributed import ProcessGroup

from .. import forked
from ..same_weights import assert_same_weights
from .distributed_cases import CASES, EXACT, ended, given_in_parts, left_by

FEW = ("single", "given_in_parts")  # of 4 processes in `make test`; the rest in `make test-slow`
PROGRAM = """
import sys, pathlib
from tests.train.distributed_cases import run_cases
run_cases(int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:])
"""


@pytest.fixture(scope="module")
def run_by(tmp_path_factory):
    """run_by(size, slow) gives the folder of what so many processes left: of 4, all cases only where it may be slow."""
    folders = {}

    def runs(size, slow):
        cases = FEW if size == 4 and not slow else (*CASES, *EXACT)
        if (size, cases) not in folders:
            folders[size, cases] = folder = tmp_path_factory.mktemp("spread")
            processes = [
                forked.Popen([sys.executable, "-c", PROGRAM, str(rank), str(size), folder, *cases], cwd=forked.ROOT)
                for rank in range(size)
            ]
            assert [process.wait(240) for process in processes] == [0] * size
        return folders[size, cases]

    return runs


def sizes(cases):
    """Every case in 2 processes and in 4; the latter is slow for most."""
    four = [pytest.param(case, 4, case not in FEW, marks=() if case in FEW else pytest.mark.slow) for case in cases]
    return [*((case, 2, False) for case in cases), *four]


@pytest.mark.parametrize(("case", "size", "slow"), sizes(CASES))
def test_any_number_of_processes_gives_the_codes_and_weights_of_one(run_by, case, size, slow):
    one, folder = ended(case), run_by(size, slow)
    first = dict(np.load(folder / f"{case}-{size}-0.npz"))
    np.testing.assert_array_equal(first["codes"], one["codes"])
    assert_same_weights(first, one)
    for rank in range(1, size):
        other = dict(np.load(folder / f"{case}-{size}-{rank}.npz"))
        assert all(np.array_equal(other[name], first[name]) for name in one), "the processes differ"


@pytest.mark.parametrize(("case", "size", "slow"), sizes(EXACT))
def test_parts_give_the_same_bits_in_any_number_of_processes(run_by, case, size, slow):
    one, folder = ended(case), run_by(size, slow)
    for rank in range(size):
        same_bits(dict(np.load(folder / f"{case}-{size}-{rank}.npz")), one)


def test_a_run_in_parts_goes_on_in_another_number_of_processes_to_the_same_bits(run_by):
    folder = run_by(4, False) / "checkpoints-4"
    max(folder.glob("*.safetensors")).unlink()  # back to the one before
    same_bits(left_by(given_in_parts(checkpoints=folder, resume=True)), ended("given_in_parts"))


def same_bits(run: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert run.keys() == other.keys()
    for name in run:
        assert run[name].tobytes() == other[name].tobytes(), name


def test_shares_are_in_order_and_cover_every_row_once():
    for size in (1, 2, 3, 4, 7):
        for count in range(20):
            rows = [np.arange(count)[ProcessGroup(rank, size).share(count)] for rank in range(size)]
            np.testing.assert_array_equal(np.concatenate(rows), np.arange(count))
            assert max(map(len, rows)) - min(map(len, rows)) <= 1


def test_the_shares_of_parts_do_not_depend_on_the_number_of_processes():
    for count in (0, 2, 4, 31):
        one = ProcessGroup(shards=4).shard_slices(count)
        assert one == [ProcessGroup(rank, 4).share(count) for rank in range(4)]
        for size in (2, 4):
            assert [share for rank in range(size) for share in ProcessGroup(rank, size, 4).shard_slices(count)] == one
    assert ProcessGroup(1, 3).shard_slices(10) == [ProcessGroup(1, 3).share(10)]


def test_a_gpu_each_or_an_error_that_says_how_many_there_are(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert ProcessGroup(1, 2).device(torch.device("cuda")) == torch.device("cuda", 1)
    assert ProcessGroup(1, 2).device(torch.device("cuda:0")) == torch.device("cuda", 0)  # as requested
    assert ProcessGroup(1, 2).device(torch.device("cpu")) == torch.device("cpu")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(InputError, match="4 processes on this host, but torch finds 2 GPUs"):
        ProcessGroup(1, 4).device(torch.device("cuda"))


def test_alone_nothing_is_copied_or_sent():
    rows = torch.randn(3, 2)
    assert ProcessGroup().gather(rows, 3) is rows
    assert ProcessGroup().sum(rows) is rows
    assert ProcessGroup().broadcast_from_rank0(lambda: 5) == 5


def test_batch_norm_of_a_whole_batch_is_torch_s():
    torch.manual_seed(0)
    images = torch.randn(6, 3, 4, 4, dtype=torch.float32)
    plain, whole = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)
    results = []
    for norm in (plain, whole):
        inputs = images.clone().requires_grad_()
        if norm is whole:
            with BatchSync(slice(0, 6), 6, lambda values: values):
                out = norm(inputs)
        else:
            out = norm(inputs)
        (out**3).sum().backward()
        results.append((out.detach(), inputs.grad, norm.weight.grad, norm.running_mean, norm.running_var))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
