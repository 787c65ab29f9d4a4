from __future__ import annotations

import numpy as np
import pytest

from adsh.errors import InputError
from adsh.hamming.bits import pack
from adsh.methods import create
from adsh.methods.arrays import signs_of
from adsh.methods.itq import nearest_rotation, quantization_error, random_rotation

from .quality import all_signs, mean_average_precision


def test_the_error_never_rises():
    rng = np.random.default_rng(0)
    errors = [h["loss"] for h in create("itq", bits=8).fit(rng.normal(size=(200, 10))).history_]
    assert len(errors) == 50
    assert np.all(np.diff(errors) <= 1e-6)
    assert errors[-1] < 0.98 * errors[0]


def test_rotations_are_orthogonal():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(30, 5)).astype(np.float32)
    for R in (random_rotation(5, rng), nearest_rotation(V, signs_of(V))):
        np.testing.assert_allclose(R.T @ R, np.eye(5), atol=1e-5)


def test_the_rotation_of_two_axes_is_the_best_of_all_angles():
    rng = np.random.default_rng(1)
    V, B = rng.normal(size=(20, 2)).astype(np.float32), signs_of(rng.normal(size=(20, 2)))
    best = quantization_error(V, B, nearest_rotation(V, B))
    for angle in np.linspace(0, 2 * np.pi, 721):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for R in (turn, turn * [1, -1]):
            assert best <= quantization_error(V, B, R.astype(np.float32)) + 1e-5


def test_the_signs_are_the_best_of_all_signs():
    """B = sign(V R) by enumeration of the codes of a point."""
    rng = np.random.default_rng(2)
    V, R = rng.normal(size=(1, 6)).astype(np.float32), random_rotation(6, rng)
    best = quantization_error(V, signs_of(V @ R), R)
    assert best == pytest.approx(min(quantization_error(V, code[None], R) for code in all_signs(6)), rel=1e-5)


def test_codes_of_the_database_are_those_of_encode_and_repeat_with_the_seed(digits):
    first = create("itq", bits=12, seed=3).fit(digits.database)
    again = create("itq", bits=12, seed=3).fit(digits.database, digits.labels)
    np.testing.assert_array_equal(first.database_codes_, again.database_codes_)
    np.testing.assert_array_equal(first.database_codes_, first.encode(digits.database))
    assert (create("itq", bits=12, seed=4).fit(digits.database).database_codes_ != first.database_codes_).any()


def test_neighbours_in_digits_share_codes_more_than_by_chance(digits):
    method = create("itq", bits=12).fit(digits.database, digits.labels)
    assert mean_average_precision(method, digits) > 0.3


def test_it_learns_from_the_training_items_alone():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(100, 6)).astype(np.float32)
    part = create("itq", bits=4).fit(Y, train=np.arange(50))
    Y[50:] *= 100
    np.testing.assert_array_equal(create("itq", bits=4).fit(Y, train=np.arange(50)).encode(Y), part.encode(Y))


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        ({"bits": 11}, {}, "bits=11, but items have 10 feature"),
        ({"bits": 0}, {}, "bits=0"),
        ({"bits": 4, "seed": -1}, {}, "seed=-1"),
        ({"bits": 4, "rounds": 0}, {}, "rounds=0"),
        ({"bits": 4}, {"train": [99]}, "train holds 99, but Y has 20 items"),
        ({"bits": 4}, {"train": []}, "train has shape"),
        ({"bits": 4}, {"train": [0.5]}, "train has shape"),
    ],
)
def test_bad_input_is_refused(options, fit, message):
    with pytest.raises(InputError, match=message):
        create("itq", **options).fit(np.ones((20, 10)), **fit)


def test_equal_points_get_equal_codes():
    codes = create("itq", bits=4).fit(np.ones((20, 10))).database_codes_
    assert (codes == codes[0]).all()


def test_use_before_fit_and_of_other_features_is_refused():
    method = create("itq", bits=2)
    with pytest.raises(AttributeError, match="not fitted"):
        method.encode(np.ones((1, 3)))
    method.fit(np.random.default_rng(0).normal(size=(9, 3)))
    with pytest.raises(InputError, match="X has 4 features, but ITQ is expecting 3 features"):
        method.encode(np.ones((1, 4)))
    assert method.database_codes_.shape == (9, 1)
    assert pack(method.hash_.outputs(np.zeros((1, 3), np.float32))).shape == (1, 1)


def test_features_whose_squares_leave_float32_keep_their_axes(blobs):
    Y, labels = blobs
    plain, large = (create("itq", bits=6).fit(Y * scale, labels) for scale in (1, 2.0**60))
    np.testing.assert_array_equal(large.database_codes_, plain.database_codes_)
