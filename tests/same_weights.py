"""Compare the weights of two runs that differ only in the order of their sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def assert_same_weights(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Weights agree within 1e-5; votes agree in every sign, and within 1e-3.

    Votes of a posterior head (`codes`, in [-1, 1]) are fitted in 600 steps to the outputs of all items, once training
    has ended: a rounding of the outputs, 1e-7, grows on the way to some 1e-4. Their signs, the codes, stay.
    """
    assert one.keys() == other.keys()
    for name in one:
        a, b = np.asarray(one[name]), np.asarray(other[name])
        if name.rpartition(".")[2] == "codes":
            np.testing.assert_array_equal(np.sign(a), np.sign(b), err_msg=name)
            np.testing.assert_allclose(a, b, atol=1e-3, rtol=0, err_msg=name)
        else:
            np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-5, err_msg=name)
