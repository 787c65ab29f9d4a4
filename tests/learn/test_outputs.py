"""U on a GPU gives what U here gives. Without a GPU the same lines run on torch's CPU tensors."""

import numpy as np
import pytest
import torch

from adsh.errors import InputError
from adsh.learn.outputs import Outputs, OutputsOnDevice

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("count", [7, 2000])
def test_both_kinds_answer_alike(count):
    rng = np.random.default_rng(0)
    values = np.tanh(rng.normal(size=(300, 12)).astype(np.float32))
    values[0, :2] = 0
    groups = rng.integers(0, count, 300)
    here = Outputs.of(values, 300, 12)
    there = OutputsOnDevice(torch.as_tensor(values, device=DEVICE).double())
    for one, other in ((here, there), (here.signs(), there.signs())):
        mine, theirs = one.totals(groups, count), other.totals(groups, count)
        assert np.allclose(mine.gram, theirs.gram, rtol=1e-12)
        assert np.allclose(mine.sums, theirs.sums, rtol=1e-12, atol=1e-12)
        assert mine.largest == theirs.largest
        assert np.array_equal(one.take(np.array([3, 1])), other.take(np.array([3, 1])))
    assert here.signs().take(np.array([0]))[0, 0] == 1
    assert here.take(np.array([], dtype=np.int64)).shape == (0, 12)


def test_a_tensor_is_taken_without_its_gradient():
    given = torch.zeros(3, 2, requires_grad=True)
    assert Outputs.of(given, 3, 2).totals(np.zeros(3, dtype=np.int64), 1).largest == 0


def test_wrong_shapes_and_numbers_are_refused():
    with pytest.raises(InputError, match=r"shape \(3, 2\), but 4 sampled points of 2 bits need \(4, 2\)"):
        Outputs.of(np.zeros((3, 2)), 4, 2)
    for odd in (np.nan, np.inf):
        with pytest.raises(InputError, match="NaN or infinity"):
            Outputs.of(np.array([[odd, 1.0]]), 1, 2).totals(np.array([0]), 1)
