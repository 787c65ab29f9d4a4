"""Codes of classes: far apart, near for classes that are alike, and never shared while there are enough."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from adsh.learn import CodeTable
from adsh.learn.class_codes import assign_codes, separated_codes
from adsh.learn.class_table import ClassGradient, ClassTable


def distances(codes):
    V = codes.astype(int)
    return (V.shape[1] - V @ V.T)[~np.eye(len(V), dtype=bool)] // 2


@given(st.integers(2, 60), st.integers(6, 40), st.integers(0, 5))
def test_classes_share_no_code_while_there_are_enough(count, bits, seed):
    codes = separated_codes(count, bits, np.random.default_rng(seed))
    assert codes.shape == (count, bits)
    assert set(np.unique(codes)) <= {-1, 1}
    assert distances(codes).min() >= 1


def test_codes_are_farther_apart_than_random_ones():
    rng = np.random.default_rng(0)
    chosen = distances(separated_codes(100, 48, rng)).min()
    at_random = [distances(np.where(rng.random((100, 48)) < 0.5, 1, -1)).min() for _ in range(20)]
    assert chosen > max(at_random)


def test_more_classes_than_codes_share_them_evenly():
    codes = separated_codes(40, 4, np.random.default_rng(0))
    _, uses = np.unique(codes, axis=0, return_counts=True)
    assert len(uses) == 16
    assert set(uses) == {2, 3}


def likeness_sum(codes, weights):
    """Sum of A_kl v_k.v_l, A of the definition, over all pairs."""
    W = weights - weights.mean(axis=0)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    A = np.exp(10 * (W @ W.T).astype(np.float64))
    np.fill_diagonal(A, 0)
    V = codes.astype(np.float64)
    return float((A * (V @ V.T)).sum())


def swapped(codes, i, j):
    codes = codes.copy()
    codes[[i, j]] = codes[[j, i]]
    return codes


@pytest.mark.parametrize("seed", range(5))
def test_no_exchange_improves_the_assignment_and_few_of_all_are_better(seed):
    rng = np.random.default_rng(seed)
    codes, weights = separated_codes(7, 8, rng), rng.standard_normal((7, 5)).astype(np.float32)
    sums = sorted(likeness_sum(codes[list(order)], weights) for order in itertools.permutations(range(7)))
    found = assign_codes(codes, weights, rng)
    assert sorted(map(tuple, found)) == sorted(map(tuple, codes))
    exchanged = [likeness_sum(swapped(found, i, j), weights) for i, j in itertools.combinations(range(7), 2)]
    assert max(exchanged) <= likeness_sum(found, weights) + 1e-4
    assert likeness_sum(found, weights) >= sums[int(0.9 * len(sums))]


def test_classes_of_one_group_get_codes_near_each_other():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(10), 8)
    weights = (2 * rng.standard_normal((10, 32))[group] + rng.standard_normal((80, 32))).astype(np.float32)
    V = assign_codes(separated_codes(80, 24, rng), weights, rng).astype(int)
    apart = (24 - V @ V.T) / 2
    same = group[:, None] == group
    assert apart[same & ~np.eye(80, dtype=bool)].mean() < apart[~same].mean() - 2


@pytest.fixture
def table():
    labels = np.concatenate([np.full(350, 2), np.arange(20) % 2, [-1, -1]])  # classes of 350, 10 and 10; two without
    return ClassTable(CodeTable(labels, 16), seed=0), labels


def test_every_class_is_sampled_as_often_as_the_others(table):
    table, labels = table
    omega = table.draw(90, np.random.default_rng(0))
    assert np.bincount(labels[omega]).tolist() == [30, 30, 30]
    assert np.array_equal(table.classes_of(omega), labels[omega])


def test_the_gradient_is_that_of_the_cross_entropy(table):
    table, labels = table
    omega = table.draw(30, np.random.default_rng(0))
    scores = torch.randn(30, 3, dtype=torch.float64, requires_grad=True)
    loss = cross_entropy(scores, torch.as_tensor(labels[omega]))
    loss.backward()
    gradient = ClassGradient.of(table, omega, torch.device("cpu"))[torch.arange(30)]
    assert torch.allclose(gradient(scores.detach()), scores.grad, atol=1e-12)
    assert table.update(omega, scores.detach(), 0.0) == pytest.approx(loss.item() * 30 * 370)


def test_all_points_of_a_class_get_its_code(table):
    table, labels = table
    votes = table.finish(np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32), None)
    dense = table.learned.dense()
    assert np.array_equal(dense[labels >= 0], np.sign(votes)[labels[labels >= 0]])
    assert not dense[labels < 0].any()  # the network encodes them
    assert len(table.rows) == 3
