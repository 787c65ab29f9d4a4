from __future__ import annotations

import numpy as np
import pytest

from adsh.labels import LabelSets
from adsh.methods import create
from adsh.methods.arrays import signs_of
from adsh.methods.cosdish import SimilarityOfSets, gram, run_round, update_rest, update_sampled
from adsh.methods.solvers.binary_quadratic import cluster_signs, flip_greedily, maximize_signs, quadratic_forms

from .quality import all_signs, mean_average_precision, similarity


@pytest.fixture
def case():
    """40 points of several labels: their S, held whole here, and codes of 6 bits."""
    rng = np.random.default_rng(0)
    hot = rng.random((40, 5)) < 0.25
    hot[hot.sum(axis=1) == 0, 0] = True
    A = similarity(hot.astype(float))
    S = np.where(A > 0, 1, -A.sum() / (A.size - A.sum()))
    return LabelSets.of(hot), S, signs_of(rng.normal(size=(40, 6)))


def sampled_columns(S, omega):
    """The columns of S with the r of their own entries."""
    similar = S[:, omega] == 1
    return np.where(similar, 1, -similar.sum() / (~similar).sum())


def _symmetric(seed, m=8):
    A = np.random.default_rng(seed).normal(size=(m, m))
    return A + A.T


@pytest.mark.parametrize("seed", range(10))
def test_clustering_is_within_twice_the_best(seed):
    """The sum of squared distances to the mean, of the points b_i u_i with U'U = A + lambda I, by enumeration."""
    A = _symmetric(seed)
    A += np.eye(len(A)) * (np.abs(A).sum() - np.diag(A))  # any shift that makes it positive will do

    def cost(b):
        return np.trace(A) - b @ A @ b / len(b)

    assert cost(cluster_signs(A)) <= 2 * min(cost(b) for b in all_signs(len(A)).astype(float))


@pytest.mark.parametrize("seed", range(10))
def test_quadratic_programs_are_improved_and_mostly_solved(seed):
    A, start = _symmetric(seed), np.where(np.random.default_rng(seed).normal(size=8) > 0, 1.0, -1.0)
    found, before, top = (
        float(quadratic_forms(A, b).max()) for b in (maximize_signs(A, start)[None], start[None], all_signs(8))
    )
    assert before <= found <= top + 1e-9
    assert found >= 0.8 * top
    still = flip_greedily(A, maximize_signs(A, start))
    np.testing.assert_array_equal(still, maximize_signs(A, start))


def test_products_with_S_are_those_of_the_whole_matrix(case):
    labels, S, B = case
    similar = SimilarityOfSets(labels)
    omega = np.array([3, 8, 20])
    of_columns = sampled_columns(S, omega)
    np.testing.assert_allclose(similar.columns(omega)[similar.ids], of_columns, atol=1e-12)
    assert abs(of_columns.sum()) < 1e-9
    assert similar.objective(B) == pytest.approx(((6 * S - B.astype(float) @ B.T) ** 2).mean())


def test_each_sampled_bit_fits_what_the_bits_before_it_left(case):
    """No flip of a sign brings b_k b_k' nearer to c S - the sum over l < k of b_l b_l', over the sampled columns."""
    _, S, B = case
    omega = np.array([1, 4, 9, 16, 25, 36])
    rest = np.setdiff1d(np.arange(40), omega)
    pull = S[np.ix_(rest, omega)].T @ B[rest]
    found = update_sampled(B[omega], S[np.ix_(omega, omega)], pull, gram(B[rest]))
    codes = B.astype(float)
    codes[omega] = found
    for k in range(6):
        residual = 6 * S[:, omega] - codes[:, :k] @ codes[omega, :k].T

        def distance(bit, residual=residual, k=k):
            column = codes[:, k].copy()
            column[omega] = bit
            apart = residual - np.outer(column, bit)
            apart[omega, np.arange(6)] = 0  # b_i^2 is 1 whatever the bit
            return (apart**2).sum()

        least = distance(codes[omega, k])
        assert least <= distance(B[omega, k].astype(float)) + 1e-9  # never worse than the bit before
        for i in range(6):
            assert least <= distance(np.where(np.arange(6) == i, -1, 1) * codes[omega, k]) + 1e-9


def test_the_rest_in_closed_form_is_the_best_by_enumeration(case):
    """sign(S B_Omega) is the least of sum |S_ij| |c sign(S_ij) - b_i.b_j| over all codes of a point."""
    labels, S, B = case
    similar, omega = SimilarityOfSets(labels), np.array([0, 5, 7, 30])
    codes = update_rest(similar.columns(omega) @ B[omega], B, similar.ids)
    for i in range(40):
        row, inner = sampled_columns(S, omega)[i], all_signs(6) @ B[omega].T.astype(float)  # (64, m)
        costs = (np.abs(row) * np.abs(6 * np.sign(row) - inner)).sum(axis=1)
        mine = (np.abs(row) * np.abs(6 * np.sign(row) - codes[i].astype(float) @ B[omega].T)).sum()
        assert mine == pytest.approx(costs.min())


def test_ties_keep_the_old_bit():
    B = np.array([[1, -1], [-1, 1]], dtype=np.int8)
    np.testing.assert_array_equal(update_rest(np.array([[1.0, 1e-15]]), B, np.zeros(2, int)), [[1, -1], [1, 1]])


def test_a_round_leaves_no_zero_and_the_given_codes_alone(case):
    labels, _, B = case
    before = B.copy()
    after = run_round(SimilarityOfSets(labels), B, np.arange(6), 3)
    np.testing.assert_array_equal(B, before)
    assert set(np.unique(after)) == {-1, 1}


@pytest.mark.parametrize("name", ["cosdish", "cosdish_d"])
def test_digits(digits, name):
    method = create(name, bits=12).fit(digits.database, digits.labels)
    assert mean_average_precision(method, digits) >= 0.6
    values_ = [h["loss"] for h in method.history_]
    assert len(values_) == 11  # the start and ten rounds
    assert min(values_) < 0.6 * values_[0]
