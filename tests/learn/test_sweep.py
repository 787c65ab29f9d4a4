"""What counts as 0 under the sign of eq. (9)."""

import numpy as np
import pytest

from adsh.learn.sweep import sweep, zero_tolerance


@pytest.mark.parametrize(("bits", "samples"), [(1, 1), (12, 3), (48, 2000)])
@pytest.mark.parametrize("before", [-1.0, 0.0, 1.0])
def test_an_argument_within_a_billionth_of_the_largest_sum_keeps_the_bit(bits, samples, before):
    """|S'U| <= m, so that Q = -2c S'U reaches 2 c m: 0.998 billionths of that are 0, 1.002 are not."""
    largest = 2 * bits * samples
    parts = np.array([0.0, 0.998, -0.998, 1.002, -1.002]) * 1e-9
    codes = np.full((5, bits), before)
    sweep(
        codes, np.zeros((bits, bits)), np.repeat(parts[:, None] * largest, bits, axis=1), zero_tolerance(bits, samples)
    )
    kept = before or 1.0
    assert codes[:, -1].tolist() == [kept, kept, kept, -1.0, 1.0]


def test_the_tolerance_itself_counts_as_zero():
    codes = np.array([[-1.0]])
    sweep(codes, np.zeros((1, 1)), np.array([[-0.25]]), 0.25)
    assert codes.tolist() == [[-1.0]]


def test_the_arguments_are_those_the_signs_were_taken_of():
    """Bit by bit: 2 v_-k . gram_-k + Q_k at the bits as they are when k's turn comes."""
    rng = np.random.default_rng(0)
    U = rng.normal(size=(9, 6))
    gram, linear = U.T @ U, rng.normal(size=(40, 6)) * 8
    codes = rng.choice([-1.0, 1.0], size=(40, 6))
    plain, expected = codes.copy(), np.empty((40, 6))
    for k in range(6):
        others = np.arange(6) != k
        expected[:, k] = 2 * plain[:, others] @ gram[others, k] + linear[:, k]
        plain[:, k] = -np.sign(expected[:, k])
    arguments = sweep(codes, gram, linear, 1e-12)
    assert np.array_equal(codes, plain)
    np.testing.assert_allclose(arguments, expected, atol=1e-12)
