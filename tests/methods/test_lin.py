"""Lin:V and Lin:Lin, and the loss on pairs that they share."""

from __future__ import annotations

import numpy as np
import pytest

from adsh.errors import InputError
from adsh.methods import create
from adsh.methods.lin_v import optimal_bit
from adsh.methods.linear_bits import fit_linear_bit, products, signs, standardize, unstandardize
from adsh.methods.solvers.hinge import fit_hinge
from adsh.methods.solvers.pair_loss import best_threshold, gains, loss, objective
from adsh.methods.solvers.ridge import moments

from .quality import all_signs, mean_average_precision


def hinge_loss(X, signs, weights, w, penalty):
    """What `fit_hinge` lowers."""
    share = weights / max(float(weights.sum()), 1e-30)
    return float((share * np.maximum(0, 1 - signs * (X @ w)) ** 2).sum() + penalty * (w**2).sum())


@pytest.fixture
def case():
    """12 queries, 5 database points, 4 bits: codes, and which pairs are similar."""
    rng = np.random.default_rng(0)
    U, V = signs(rng.normal(size=(12, 4))), signs(rng.normal(size=(5, 4)))
    return U, V, rng.random((12, 5)) < 0.4


def total(U, V, similar, theta=0.5):
    return float(loss(similar, (U @ V.T).astype(float), theta).sum())


def test_the_objective_falls_as_the_gain_rises(case):
    """sum loss = a constant - u'M v / 2, for every pair of bits."""
    U, V, similar = case
    M = gains(similar, U[:, 1:] @ V[:, 1:].T, 4, 0.5)
    rng = np.random.default_rng(1)
    constants = []
    for _ in range(10):
        u, v = signs(rng.normal(size=12)), signs(rng.normal(size=5))
        constants.append(total(np.c_[u, U[:, 1:]], np.c_[v, V[:, 1:]], similar) + u @ M @ v / 2)
    np.testing.assert_allclose(constants, constants[0], rtol=1e-5)


def test_free_bits_are_the_best_by_enumeration(case):
    U, V, similar = case
    M = gains(similar, U[:, 1:] @ V[:, 1:].T, 4, 0.5)
    found = total(U, np.c_[optimal_bit(M, U[:, 0], V[:, 0]), V[:, 1:]], similar)
    every = [total(U, np.c_[bit, V[:, 1:]], similar) for bit in all_signs(5)]
    assert found == pytest.approx(min(every), rel=1e-6)


def test_a_fitted_bit_never_raises_the_objective():
    rng = np.random.default_rng(0)
    for _ in range(20):
        Z, w = rng.normal(size=(12, 3)).astype(np.float32), rng.normal(size=3).astype(np.float32)
        M, bit = rng.normal(size=(12, 5)).astype(np.float32), signs(rng.normal(size=5))
        after = fit_linear_bit(Z, M, bit, w, 0.01)
        assert signs(Z @ after) @ M @ bit >= signs(Z @ w) @ M @ bit


def test_the_hinge_fit_is_the_bottom():
    """No step in any direction lowers the loss, and separable signs are separated."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 4)).astype(np.float32)
    target, weights = signs(Z[:, 0] - Z[:, 1] + 0.8 * rng.normal(size=60)), rng.random(60).astype(np.float32)
    w = fit_hinge(Z, target, weights, np.zeros(4, np.float32), 0.01, steps=500)
    least = hinge_loss(Z, target, weights, w, 0.01)
    for direction in rng.normal(size=(50, 4)).astype(np.float32):
        assert least <= hinge_loss(Z, target, weights, w + 0.05 * direction, 0.01) + 1e-6
    easy = signs(Z[:, 0])
    fitted = fit_hinge(Z, easy, np.ones(60, np.float32), np.zeros(4, np.float32), 1e-4)
    np.testing.assert_array_equal(signs(Z @ fitted), easy)
    assert np.isfinite(fit_hinge(0 * Z, easy, 0 * weights, np.zeros(4, np.float32), 0.01)).all()


def test_the_threshold_is_the_best_of_those_tried(case):
    U, V, similar = case
    counts = np.arange(1.0, 6.0)
    y = (U @ V.T).astype(np.float32)
    theta = best_threshold(similar, y, 4, 0.25, counts)
    tried = [objective(similar, y, t, counts) for t in (0.25, *np.arange(-4, 4.5, 0.5))]
    assert objective(similar, y, theta, counts) == pytest.approx(min(tried))


def test_functions_of_standardised_features_are_the_same_of_given_ones():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(30, 3)) * [1, 10, 100] + 5).astype(np.float32)
    W, (mean, scale) = rng.normal(size=(4, 2)).astype(np.float32), moments(X)
    np.testing.assert_allclose(
        unstandardize(W, mean, scale).outputs(X), standardize(X, mean, scale) @ W, rtol=1e-3, atol=1e-3
    )
    assert products(X, X[:3, :0].repeat(0, axis=1), np.zeros((7, 0), np.float32)).shape == (30, 7)


@pytest.mark.parametrize("name", ["lin_v", "lin_lin"])
def test_digits(digits, name):
    method = create(name, bits=12).fit(digits.database, digits.labels)
    assert mean_average_precision(method, digits) >= 0.6
    objectives = [h["loss"] for h in method.history_]
    assert len(objectives) == 4
    assert objectives[-1] < 0.5 * objectives[0]


def test_lin_v_gives_one_code_a_label_set_and_lin_lin_codes_both_sides_apart(blobs):
    Y, labels = blobs
    codes = create("lin_v", bits=8).fit(Y, labels).database_codes_
    assert [len(np.unique(codes[labels == k], axis=0)) for k in range(3)] == [1, 1, 1]
    two = create("lin_lin", bits=8).fit(Y, labels)
    assert (two.encode(Y) != two.database_codes_).any()


@pytest.mark.parametrize("name", ["lin_v", "lin_lin"])
@pytest.mark.parametrize("options", [{"rounds": 0}, {"block": 0}, {"alternations": 0}, {"penalty": -1.0}])
def test_wrong_options_are_refused_with_their_value(name, options, blobs):
    ((option, value),) = options.items()
    with pytest.raises(InputError, match=f"{option}={value!r}"):
        create(name, bits=8, **options).fit(*blobs)
