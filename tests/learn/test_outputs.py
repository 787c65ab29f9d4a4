"""The sums that an update needs, by NumPy and by torch, against a written-out loop."""

import numpy as np
import pytest
import torch

from adsh.errors import InputError
from adsh.learn import CodeTable
from adsh.learn.outputs import Outputs, sums_there

from .cases import outputs

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [3, 40])  # a group of them may be empty; many are summed in another way
def test_sums(device, count):
    rng = np.random.default_rng(count)
    U = rng.uniform(-0.9, 0.7, (50, 5)).astype(np.float32)
    groups = rng.integers(count, size=50)
    gram, by_group, largest = np.zeros((5, 5)), np.zeros((count, 5)), 0.0
    for u, group in zip(U.astype(np.float64), groups, strict=True):
        gram += np.outer(u, u)
        by_group[group] += u
        largest = max(largest, *map(abs, u))
    there = torch.as_tensor(U, device=device)
    for found in (Outputs(U, 50, 5).sums(groups, count), Outputs(there, 50, 5).sums(groups, count),
                  sums_there(there, groups, count)):  # fmt: skip
        np.testing.assert_allclose(found[0], gram, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[1], by_group, rtol=0, atol=1e-12)
        assert found[2] == pytest.approx(largest)


def test_another_shape_is_refused():
    with pytest.raises(InputError, match=r"shape \(3, 2\), but 4 sampled points of 2 bits need \(4, 2\)"):
        Outputs(np.zeros((3, 2)), 4, 2)


def test_torch_outputs_are_taken_as_numpy_ones_are():
    rng = np.random.default_rng(6)
    U = outputs(4, 8, rng)
    a, b = CodeTable(np.arange(10) % 3, 8), CodeTable(np.arange(10) % 3, 8)
    a.update([0, 1, 2, 5], U, 1.0)
    b.update(torch.tensor([0, 1, 2, 5]), torch.tensor(U, requires_grad=True), 1.0)
    assert np.array_equal(a.dense(), b.dense())
