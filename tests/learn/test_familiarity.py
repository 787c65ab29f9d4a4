"""What looks like nothing known is told from what is known, and by how much is calibrated."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from adsh import LabelSets
from adsh.learn.familiarity import Familiarity, Statistics, measure


def clouds(classes, each, seed=1, dimensions=24):
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.standard_normal((max(classes) + 1, dimensions))
    shape = rng.standard_normal((dimensions, dimensions)) / 4
    labels = np.repeat(classes, each)
    noise = np.random.default_rng(seed).standard_normal((len(labels), dimensions)) @ shape
    return (centres[labels] + noise).astype(np.float32), labels


@pytest.fixture(scope="module")
def known():
    X, labels = clouds(range(6), 200)
    return measure(LabelSets.of(labels), lambda chosen: X[chosen], seed=0)


def test_unknown_classes_are_less_familiar(known):
    ours, theirs = clouds(range(6), 50, seed=2)[0], clouds(range(6, 10), 50, seed=3)[0]
    truth = np.repeat([1, 0], [len(ours), len(theirs)])
    assert roc_auc_score(truth, np.concatenate([known(ours), known(theirs)])) > 0.95


def test_it_is_a_share_of_known_items(known):
    fresh = known(clouds(range(6), 300, seed=5)[0])
    assert ((fresh > 0) & (fresh <= 1)).all()
    for share in (0.05, 0.25, 0.5):
        assert abs((fresh <= share).mean() - share) < 0.08


def test_distances_are_those_of_the_formula():
    X, labels = clouds(range(3), 40, dimensions=6)
    found = Statistics.of(X, labels)
    query = clouds(range(4), 5, seed=8, dimensions=6)[0].astype(np.float64)
    a = (query - X.mean(axis=0, dtype=np.float64)) @ found.spread.astype(np.float64)
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    d = np.linalg.norm((a @ found.within)[:, None] - found.centres[None], axis=2).min(axis=1)
    np.testing.assert_allclose(found.distances(query.astype(np.float32)), d, rtol=1e-4)
    covariance = np.cov(X.T, bias=True)
    shrunk = 0.7 * covariance + 0.3 * np.trace(covariance) / 6 * np.eye(6)
    np.testing.assert_allclose(found.spread.T @ shrunk @ found.spread, np.eye(6), atol=1e-4)


def test_turning_scaling_and_moving_the_features_changes_nothing():
    X, labels = clouds(range(4), 60)
    query = clouds(range(6), 20, seed=4)[0]
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((24, 24)))[0].astype(np.float32)
    plain = Statistics.of(X, labels).distances(query)
    np.testing.assert_allclose(
        Statistics.of(3 * X @ turn + 7, labels).distances(3 * query @ turn + 7), plain, rtol=1e-3
    )


def test_a_class_that_is_added_becomes_familiar(known):
    X, labels = clouds([7], 100, seed=6)
    fresh = clouds([7], 100, seed=7)[0]
    assert np.median(known.with_classes(X, labels)(fresh)) > 0.2 > 0.05 > np.median(known(fresh))


def test_rare_and_unlabelled_items_are_left_out_and_too_few_are_none():
    X, labels = clouds(range(3), 30)
    names = [str(label) for label in labels]
    names[0], names[1] = "", "once"
    found = measure(LabelSets.of(names), lambda chosen: X[chosen], seed=0)
    assert len(found.statistics.centres) == 3
    assert measure(LabelSets.of(np.arange(6)), lambda chosen: X[chosen], seed=0) is None
    assert measure(LabelSets.of(np.zeros(50, dtype=int)), lambda chosen: X[chosen], seed=0) is None


def test_what_is_saved_is_the_same_and_damage_is_noticed(known):
    X = clouds(range(8), 5, seed=9)[0]
    arrays = known.arrays()
    assert np.array_equal(Familiarity.load(arrays)(X), known(X))
    with pytest.raises(ValueError, match="do not fit"):
        Familiarity.load(arrays | {"within": arrays["within"][:3]})
