import numpy as np
import pytest

from adsh.hamming.small_vectors import FARTHEST, NONE, Projection, squared_distances


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    return rng.normal(size=(500, 100)) * np.linspace(3, 0.01, 100) + 5


def test_small_vectors_keep_the_neighbours_of_the_features(features):
    small = Projection.fit(features)(features)
    assert small.shape == (500, 64)
    assert small.dtype == np.int8
    exact = ((features - features[0]) ** 2).sum(axis=1)
    near = squared_distances(small[0], small, slice(0, 500))
    assert len(set(np.argsort(exact)[:20]) & set(np.argsort(near)[:20])) >= 18


def test_distances_are_exact_integers_however_the_vectors_are_picked(features):
    small = Projection.fit(features)(features)
    right = ((small.astype(int) - small[7].astype(int)) ** 2).sum(axis=1)
    assert squared_distances(small[7], small, slice(0, 500)).tolist() == right.tolist()
    some = np.array([3, 400, 7])
    assert squared_distances(small[7], small, some).tolist() == right[some].tolist()


def test_an_item_without_a_vector_is_farther_than_any(features):
    small = Projection.fit(features)(features)
    small[3, 0] = NONE
    near = squared_distances(small[0], small, slice(0, 500))
    assert near[3] == FARTHEST > np.delete(near, 3).max()
    assert FARTHEST > 64 * 254**2


def test_features_of_fewer_dimensions_keep_all_of_them():
    features = np.random.default_rng(0).normal(size=(300, 5))
    assert Projection.fit(features)(features).shape == (300, 5)


def test_equal_features_and_a_single_one_are_projected():
    assert Projection.fit(np.ones((4, 8)))(np.ones((4, 8))).tolist() == np.zeros((4, 8)).tolist()
    assert Projection.fit(np.ones((1, 8)))(np.ones((1, 8))).tolist() == np.zeros((1, 8)).tolist()
