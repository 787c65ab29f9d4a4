from __future__ import annotations

import numpy as np
import pytest

from adsh.errors import InputError
from adsh.labels import LabelSets
from adsh.learn.similarity import SharedTags
from adsh.methods import create, load
from adsh.methods.lfh import initial_factors, log_likelihood, maximize_bound, similarity_columns

from .quality import mean_average_precision, similarity


def bounded(row: np.ndarray, sampled: np.ndarray, similar: np.ndarray, shrink: float) -> float:
    """What a row's move is to raise: each pair counted from both its ends, and the prior."""
    return 2 * log_likelihood(row[None], sampled, similar[None]) - shrink * (row**2).sum() / 2


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    hot = rng.random((30, 4)) < 0.3
    return hot, rng.normal(size=(30, 5)) * 2, rng.choice(30, 6, replace=False)


def test_columns_are_those_of_the_whole_matrix(case):
    hot, _, omega = case
    labels = LabelSets.of(hot)
    found = similarity_columns(SharedTags(labels, labels), labels.ids.astype(int), omega)
    np.testing.assert_array_equal(found, similarity(hot.astype(float))[:, omega])


def test_the_likelihood_is_that_of_the_logistic(case):
    hot, U, omega = case
    S = similarity(hot.astype(float))[:, omega]
    a = 1 / (1 + np.exp(-U @ U[omega].T / 2))
    assert log_likelihood(U, U[omega], S) == pytest.approx((S * np.log(a) + (1 - S) * np.log(1 - a)).sum())


@pytest.mark.parametrize("part", [1.0, 0.3])
def test_no_move_lowers_a_rows_objective(case, part):
    hot, U, omega = case
    S = similarity(hot.astype(float))[:, omega]
    moved = U + part * (maximize_bound(U, U[omega], S, 0.2) - U)
    before, after = ([bounded(u, U[omega], s, 0.2) for u, s in zip(rows, S, strict=True)] for rows in (U, moved))
    assert np.all(np.array(after) >= np.array(before) - 1e-9)
    assert sum(after) > sum(before)


def test_the_move_is_the_top_of_a_bound_below(case):
    """Gradient by finite differences, curvature as in the file's head; the bound touches at u and lies below."""
    hot, U, omega = case
    S, sampled = similarity(hot.astype(float))[:, omega], U[omega]
    moved, rng = maximize_bound(U, sampled, S, 0.2), np.random.default_rng(1)
    H = -sampled.T @ sampled / 8 - 0.2 * np.eye(5)
    for u, s, to in zip(U[:5], S, moved, strict=False):
        rises = [(bounded(u + e, sampled, s, 0.2) - bounded(u - e, sampled, s, 0.2)) / 2e-5 for e in 1e-5 * np.eye(5)]
        np.testing.assert_allclose(u - np.linalg.solve(H, rises), to, atol=1e-5)
        for v in rng.normal(size=(20, 5)) * 3:
            bound = bounded(u, sampled, s, 0.2) + rises @ (v - u) + (v - u) @ H @ (v - u) / 2
            assert bound <= bounded(v, sampled, s, 0.2) + 1e-5


def test_it_starts_from_principal_components_and_noise_beyond_them():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 3)) * [5, 2, 1]).astype(np.float32)
    U = initial_factors(X, 6, rng)
    np.testing.assert_allclose(U.std(axis=0), 1, atol=0.2)
    assert abs(np.corrcoef(U[:, 0], X[:, 0])[0, 1]) > 0.99
    assert np.isfinite(initial_factors(np.ones((5, 3), np.float32), 4, rng)).all()


@pytest.mark.parametrize("name", ["lfh", "lfh_d", "lfh_decay", "lfh_decay_d"])
def test_digits(digits, name):
    method = create(name, bits=12, hash_function="ridge").fit(digits.database, digits.labels)
    assert mean_average_precision(method, digits) >= 0.6
    objectives = [h["loss"] for h in method.history_]
    assert len(objectives) == 51
    if method.decay:  # the full steps of the published method fit the last columns alone
        assert objectives[-1] < 0.9 * objectives[0]


def test_the_published_method_takes_full_steps_and_the_other_shorter_ones():
    assert create("lfh", bits=8).decay == 0
    assert create("lfh_decay", bits=8).decay == 0.5


def test_a_model_saved_with_a_decay_is_loaded_with_it(blobs, tmp_path):
    """As `lfh` was, before `lfh_decay` had the name."""
    method = create("lfh", bits=8, decay=0.5, hash_function="ridge").fit(*blobs)
    method.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert (again.name, again.decay) == ("lfh", 0.5)
    np.testing.assert_array_equal(again.database_codes_, method.database_codes_)
    decayed = create("lfh_decay", bits=8, hash_function="ridge").fit(*blobs)
    np.testing.assert_array_equal(again.database_codes_, decayed.database_codes_)


@pytest.mark.parametrize("options", [{"rounds": 0}, {"variance": 0}, {"decay": -1}])
def test_wrong_options_are_refused_with_their_value(options, blobs):
    ((name, value),) = options.items()
    with pytest.raises(InputError, match=f"{name}={value!r}"):
        create("lfh", bits=8, **options).fit(*blobs)
