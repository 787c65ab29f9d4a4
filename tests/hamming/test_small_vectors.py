import numpy as np
import pytest

from adsh.hamming import small_vectors
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
    assert Projection.fit(np.ones((4, 8))).scale == 1.0


def test_the_farthest_features_become_127_and_none_becomes_the_sign_of_nothing():
    for reach in (0.25, 40.0):
        projection = Projection.fit(np.array([[-reach], [reach]]))
        assert projection.scale == pytest.approx(127 / reach)
        assert projection(np.array([[-9.0], [-1.0], [0.5], [9.0]]) * reach).ravel().tolist() == [-127, -127, 64, 127]


def test_components_come_in_order_of_variance_and_the_largest_entry_of_each_is_positive(features):
    components = Projection.fit(features).components
    largest = components[np.abs(components).argmax(axis=0), np.arange(64)]
    assert (largest > 0).all()
    assert (np.diff((features @ components).std(axis=0)) < 0).all()


def test_many_features_are_fitted_by_some_from_the_first_to_the_last(monkeypatch, features):
    some = Projection.fit(features[[0, 2, 4]])
    monkeypatch.setattr(small_vectors, "_FIT_ON", 3)
    many = Projection.fit(features[:5])
    assert many.mean.tolist() == some.mean.tolist()
    assert many.scale == some.scale


def test_distances_are_the_same_block_by_block_and_from_any_start(monkeypatch, features):
    small = Projection.fit(features)(features)
    small[130, 0] = NONE
    whole = squared_distances(small[7], small, slice(0, 500))
    assert whole.dtype == np.float32
    monkeypatch.setattr(small_vectors, "_AT_A_TIME", 64)
    for start, stop in ((0, 500), (100, 290), (129, 131)):
        assert squared_distances(small[7], small, slice(start, stop)).tolist() == whole[start:stop].tolist()
    some = np.random.default_rng(0).integers(0, 500, 150)
    assert squared_distances(small[7], small, some).tolist() == whole[some].tolist()
