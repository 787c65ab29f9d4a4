"""What an update needs of U, by NumPy and by torch, against written-out loops."""

import numpy as np
import pytest
import torch

from adsh.errors import InputError
from adsh.learn import CodeTable
from adsh.learn.outputs import DeviceOutputs, Outputs, as_outputs, load_kernels

from .cases import outputs

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def drawn(count):
    rng = np.random.default_rng(count)
    return rng.uniform(-0.9, 0.7, (50, 5)).astype(np.float32), rng.integers(count, size=50), rng


def in_every_way(U, groups, device):
    there = torch.as_tensor(U, device=device)
    return as_outputs(U, groups, 5), as_outputs(there, groups, 5), DeviceOutputs(there, groups)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [3, 40])  # a group of them may be empty; many are summed in another way
def test_sums(device, count):
    U, groups, _ = drawn(count)
    gram, by_group, largest = np.zeros((5, 5)), np.zeros((count, 5)), 0.0
    for u, group in zip(U.astype(np.float64), groups, strict=True):
        gram += np.outer(u, u)
        by_group[group] += u
        largest = max(largest, *map(abs, u))
    for way in in_every_way(U, groups, device):
        found = way.sums(count)
        np.testing.assert_allclose(found[0], gram, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[1], by_group, rtol=0, atol=1e-12)
        assert found[2] == pytest.approx(largest)


def test_sums_of_too_many_groups_for_a_matrix(monkeypatch):
    monkeypatch.setattr("adsh.learn.outputs._LARGEST", 100)
    U, groups, _ = drawn(40)
    by_numpy, _, by_torch = in_every_way(U, groups, "cpu")
    np.testing.assert_array_equal(by_torch.sums(40)[1], by_numpy.sums(40)[1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("room", "some"), [(0.4, True), (0.0, True), (2.0, False)])
def test_points_past_the_room_of_their_group(device, room, some):
    U, groups, rng = drawn(4)
    pull, rooms = rng.choice([-0.5, 0.5], (4, 5)), np.abs(rng.normal(room, 0.05, (4, 5)))
    rooms[2] = 3.0  # nobody of this group, whatever the bit
    past = [j for j in range(50) if any(pull[groups[j], k] * float(U[j, k]) >= rooms[groups[j], k] for k in range(5))]
    assert bool(past) == some
    for way in in_every_way(U, groups, device):
        which, theirs = way.past(pull, rooms, 0.9)
        assert which.tolist() == past
        np.testing.assert_array_equal(theirs, U[past].astype(np.float64))


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_are_loaded_without_a_trace(device):
    load_kernels(12, 5, torch.device(device))


def test_another_shape_is_refused():
    with pytest.raises(InputError, match=r"shape \(3, 2\), but 4 sampled points of 2 bits need \(4, 2\)"):
        as_outputs(np.zeros((3, 2)), np.zeros(4, np.int64), 2)


def test_arrays_stay_with_numpy():
    assert type(as_outputs(np.zeros((3, 2)), np.zeros(3, np.int64), 2)) is Outputs


@pytest.mark.parametrize("there", [False, True])
def test_torch_outputs_are_taken_as_numpy_ones_are(there, monkeypatch):
    if there:  # as on a GPU
        monkeypatch.setattr(
            "adsh.learn.code_table.as_outputs", lambda given, at, bits: DeviceOutputs(given.detach(), at)
        )
    rng = np.random.default_rng(6)
    labels, a_codes = np.arange(300) % 3, []
    table, other = CodeTable(labels, 8), CodeTable(labels, 8)
    for _ in range(4):
        omega, U = rng.choice(300, 64, replace=False), outputs(64, 8, rng)
        with monkeypatch.context() as undone:
            undone.setattr("adsh.learn.code_table.as_outputs", as_outputs)
            J = table.update(omega, U, 60.0)
        assert other.update(torch.tensor(omega), torch.tensor(U, requires_grad=True), 60.0) == pytest.approx(J)
        a_codes.append(len(table.rows))
        assert np.array_equal(table.dense(), other.dense())
    assert max(a_codes) > 3  # points did leave their rows
