"""Codes and votes of label sets, learned together: near codes for what probably shares a label, none shared."""

import itertools

import numpy as np
import pytest
import torch

from adsh.learn.class_table import ClassTable
from adsh.learn.class_votes import Goal, distinct_votes, learned_votes
from adsh.learn.code_table import CodeTable

SETS = [[0], [1], [0, 1], [2], [1, 2], [3], [0, 3]]


def goal_of(sets, database, contrast=4.0):
    similar = torch.tensor([[float(bool({*a} & {*b})) for b in sets] for a in sets])
    return Goal(similar, torch.arange(1.0, len(sets) + 1), contrast, database, softer=1.5)


@pytest.fixture(scope="module")
def scores():
    """Items between two or three label sets."""
    rng = np.random.default_rng(0)
    return torch.as_tensor(3 * rng.standard_normal((2000, len(SETS))), dtype=torch.float32)


@pytest.mark.parametrize("database", [0.0, 0.75, 1.0])
def test_label_sets_that_share_a_label_get_nearer_codes(scores, database):
    goal = goal_of(SETS, database)
    start = np.random.default_rng(1).standard_normal((len(SETS), 24)).astype(np.float32)
    votes, loss = learned_votes(start, scores, goal, seed=0)
    assert np.abs(votes).max(axis=0) == pytest.approx(1)
    apart = (24 - np.sign(votes) @ np.sign(votes).T) / 2
    similar = goal.similar.numpy() == 1
    different = ~np.eye(len(SETS), dtype=bool)
    assert apart[similar & different].mean() < apart[~similar].mean() - 3
    again = learned_votes(start, scores, goal, seed=0)
    assert np.array_equal(again[0], votes)
    assert again[1] == loss


def test_the_loss_ranks_starts(scores):
    """It is that of the codes: many bits fit better than one."""
    rng = np.random.default_rng(1)
    losses = [
        learned_votes(rng.standard_normal((len(SETS), bits)).astype(np.float32), scores, goal_of(SETS, 0.75), seed=0)[1]
        for bits in (1, 4, 24)
    ]
    assert losses[0] > losses[1] > losses[2]


def test_a_shared_code_is_distinct_votes_by_its_least_certain_bits():
    votes = np.array([[0.9, 0.5, 0.1], [0.8, 0.2, 0.3], [0.7, 0.3, 0.3], [0.7, 0.2, 0.3]], dtype=np.float32)
    apart = distinct_votes(votes)
    assert np.array_equal(np.abs(apart), votes)
    assert np.sign(apart).astype(int).tolist() == [[1, 1, 1], [1, -1, 1], [1, 1, -1], [1, -1, -1]]


@pytest.mark.parametrize("seed", range(5))
def test_every_flip_is_the_cheapest_that_is_left(seed):
    rng = np.random.default_rng(seed)
    votes = rng.random((16, 4)).astype(np.float32)  # all with one code, and just enough codes
    apart = distinct_votes(votes)
    taken = set()
    for before, after in zip(votes, apart, strict=True):
        costs = {
            signs: sum(cost for sign, cost in zip(signs, before, strict=True) if sign < 0)
            for signs in itertools.product([1, -1], repeat=4)
            if signs not in taken
        }
        found = tuple(np.sign(after).astype(int).tolist())
        assert costs[found] == pytest.approx(min(costs.values()))
        taken.add(found)
    assert len(taken) == 16


def test_more_label_sets_than_codes_are_left_as_they_are():
    votes = np.ones((5, 2), dtype=np.float32)
    assert np.array_equal(distinct_votes(votes), votes)


def test_a_new_label_set_gets_a_code_near_those_that_share_its_labels():
    labels = [[0], [1], [2], [0, 1], [1, 2], [3], [3, 4], [4]] * 10
    table = ClassTable(CodeTable(labels, 16), seed=0)
    assert table.several_labels
    assert table.members().sum() == 11
    scores = torch.as_tensor(8 * np.eye(8, dtype=np.float32)[table.classes_of(np.arange(80))])
    votes = table.finish(np.zeros((8, 4), dtype=np.float32), scores)
    last = table.learned.last_update
    V = np.sign(votes).astype(np.float64)
    np.testing.assert_allclose(last.gram, 10 * V.T @ V)
    np.testing.assert_allclose(last.sums, 10 * V)
    members = table.members()
    similar = 100 * float((members @ members.T > 0).sum())
    assert last.ratio == pytest.approx(similar / (80**2 - similar))
