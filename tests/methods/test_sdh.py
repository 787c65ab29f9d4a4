from __future__ import annotations

import numpy as np
import pytest

from adsh.errors import InputError
from adsh.labels import LabelSets
from adsh.methods import create
from adsh.methods.arrays import signs_of, tags_of_sets
from adsh.methods.sdh import SDH
from adsh.methods.solvers.coordinate_descent import minimize_codes
from adsh.methods.solvers.kernel import Anchors
from adsh.methods.solvers.ridge import product

from .quality import all_signs, mean_average_precision


def descent_objective(signs, target, gram):
    """tr(B gram B') - 2 tr(B' target)."""
    codes = signs.astype(np.float64)
    return float(((codes @ gram) * codes).sum() - 2 * (codes * target).sum())


def test_a_bit_is_the_best_given_the_others():
    """One sweep over a code of one bit is exact, and so is each bit where the others are fixed: by enumeration."""
    rng = np.random.default_rng(0)
    W, target = rng.normal(size=(5, 3)), rng.normal(size=(6, 5))
    codes = signs_of(rng.normal(size=(6, 5)))
    settled = minimize_codes(codes, target, W @ W.T, sweeps=100)
    for k in range(5):
        for bit in all_signs(6).astype(np.int8):
            other = settled.copy()
            other[:, k] = bit
            better = descent_objective(settled, target, W @ W.T)
            assert better <= descent_objective(other, target, W @ W.T) + 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_no_sweep_raises_its_objective(seed):
    rng = np.random.default_rng(seed)
    W, target = rng.normal(size=(8, 4)), rng.normal(size=(50, 8)) * 3
    codes = signs_of(rng.normal(size=(50, 8)))
    for _ in range(6):
        after = minimize_codes(codes, target, W @ W.T, sweeps=1)
        before = descent_objective(codes, target, W @ W.T)
        assert descent_objective(after, target, W @ W.T) <= before + 1e-5
        codes = after


def test_a_bit_without_a_pull_stays():
    codes = np.array([[1, -1], [-1, -1]], dtype=np.int8)
    np.testing.assert_array_equal(minimize_codes(codes, np.zeros((2, 2)), np.eye(2), sweeps=3), codes)


def test_nearness_is_the_kernel_of_the_median_distance():
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32) + 100
    anchors = Anchors.among(X[:7], X)
    distances = np.linalg.norm(X[:, None] - X[None, :7], axis=2)
    assert anchors.spread == pytest.approx(np.median(distances[distances > 0]), rel=1e-3)
    expected = np.exp(-(distances**2) / (2 * anchors.spread**2))
    np.testing.assert_allclose(anchors.features(X), expected, atol=1e-4)


def test_each_step_lowers_the_dense_objective():
    """The objective from label-set sums is the dense one, and P, W and B each do not raise it."""
    rng = np.random.default_rng(0)
    hot = rng.random((60, 5)) < 0.4
    hot[hot.sum(axis=1) == 0, 0] = True
    labels, X = LabelSets.of(hot), rng.normal(size=(60, 4)).astype(np.float32)
    method = SDH(6, anchors=20, hash_weight=0.1)
    Phi = Anchors.among(X[:20], X).features(X)
    gram = (Phi.T @ Phi).astype(float)
    table = tags_of_sets(labels)

    def dense(B, W, P):
        hashing = ((B - Phi @ P) ** 2).sum() + 0.01 * (P**2).sum()
        return ((hot - B @ W) ** 2).sum() + (W**2).sum() + 0.1 * hashing

    B, W, P = signs_of(rng.normal(size=(60, 6))), rng.normal(size=(6, 5)), rng.normal(size=(20, 6))
    values = [dense(B, W, P)]
    for _ in range(3):
        P, fitted = method._project(Phi, gram, B)
        values.append(dense(B, W, P))
        W = method._classify(B, labels, table)
        values.append(dense(B, W, P))
        B = minimize_codes(B, 0.1 * fitted + (table @ W.T)[labels.ids], W @ W.T, 10)
        values.append(dense(B, W, P))
        assert method._objective(B, W, P, fitted, labels, table) == pytest.approx(values[-1], rel=1e-5)
    assert np.all(np.diff(values) <= 1e-4)
    assert values[-1] < values[1]


def test_the_gram_matrix_of_anchors_is_not_rounded_to_float32():
    """On 58,000 points rounding is larger than the penalty on P, and P exploded."""
    Phi = np.random.default_rng(0).random((20000, 3)).astype(np.float32)
    np.testing.assert_allclose(product(Phi, Phi), Phi.astype(float).T @ Phi.astype(float), rtol=1e-12)


@pytest.mark.parametrize("name", ["sdh", "sdh_d"])
def test_digits(digits, name):
    method = create(name, bits=12).fit(digits.database, digits.labels)
    assert mean_average_precision(method, digits) >= 0.6
    values = [h["loss"] for h in method.history_]
    assert len(values) == 5
    assert np.all(np.diff(values) <= 1e-3)
    assert values[-1] < values[0]
    if name == "sdh":
        np.testing.assert_array_equal(method.database_codes_, method.encode(digits.database))


def test_the_plain_one_learns_from_the_training_items_alone(blobs):
    Y, labels = blobs
    spoiled = np.where(np.arange(300) < 150, labels, 0)
    fitted = [create("sdh", bits=8, anchors=50).fit(Y, known, train=np.arange(150)) for known in (labels, spoiled)]
    np.testing.assert_array_equal(fitted[0].database_codes_, fitted[1].database_codes_)


def test_more_anchors_than_points_are_refused(blobs):
    with pytest.raises(InputError, match="anchors=1000, but there are 300 training items"):
        create("sdh", bits=8).fit(*blobs)
