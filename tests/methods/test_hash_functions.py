from __future__ import annotations

import builtins

import numpy as np
import pytest

from adsh.errors import InputError, MissingExtraError
from adsh.methods import create
from adsh.methods.arrays import signs_of
from adsh.methods.solvers.ridge import moments, ridge_hash
from adsh.methods.solvers.trees import TreeFitter


def test_ridge_is_the_least_squares_of_standardised_features():
    """Against the closed form with an unpenalised constant, on features of unlike scales."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(50, 4)) * [1, 10, 0.1, 3] + [0, 5, 1, -2]).astype(np.float32)
    signs = signs_of(rng.normal(size=(50, 3)))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    W = np.linalg.solve(Z.T @ Z + 0.1 * 50 * np.eye(4), Z.T @ signs)
    np.testing.assert_allclose(ridge_hash(X, signs, 0.1).outputs(X), Z @ W + signs.mean(axis=0), atol=1e-3)


def test_a_feature_that_never_varies_does_no_harm():
    X = np.c_[np.full(20, 7.1), np.arange(20)].astype(np.float32)
    assert moments(X)[1][0] == 1
    signs = signs_of(np.arange(20.0)[:, None] - 9.5)
    np.testing.assert_array_equal(signs_of(ridge_hash(X, signs, 1e-3).outputs(X)), signs)


def test_trees_learn_what_no_plane_parts_and_constant_bits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    signs = np.stack([signs_of(X[:, 0] * X[:, 1]), np.full(400, -1, np.int8)], axis=1)
    trees = TreeFitter(X, trees=50, depth=3, seed=0)(signs)
    assert (signs_of(trees.outputs(X)) == signs).mean() > 0.97
    again = TreeFitter(X, trees=50, depth=3, seed=0)(signs)
    np.testing.assert_array_equal(trees.outputs(X), again.outputs(X))


def test_without_lightgbm_the_install_command_is_shown_before_anything_is_learned(monkeypatch, blobs):
    real = builtins.__import__

    def no_lightgbm(name, *rest, **named):
        if name == "lightgbm":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", no_lightgbm)
    with pytest.raises(MissingExtraError, match=r"pip install 'adsh\[baselines\]'"):
        create("cosdish", bits=8).fit(*blobs)
    create("cosdish", bits=8, hash_function="ridge").fit(*blobs)


@pytest.mark.parametrize(
    "options",
    [{"hash_function": "forest"}, {"trees": 0}, {"depth": 1.5}, {"penalty": 0}, {"rounds": 0}, {"columns": 0}],
)
def test_wrong_options_are_refused_with_their_value(options, blobs):
    ((name, value),) = options.items()
    with pytest.raises(InputError, match=f"{name}={value!r}"):
        create("cosdish", bits=8, **options).fit(*blobs)
