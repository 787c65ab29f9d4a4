"""scikit-learn's protocol: its own checks, and its own Pipeline, GridSearchCV and cross_val_score."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import adsh
from adsh import metrics
from adsh.errors import InputError, NotFittedError
from adsh.hamming.bits import DEFAULT_BITS, pack
from adsh.methods import METHODS, create

pytest.importorskip("sklearn")
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError as ScikitNotFitted
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

EXCEPTIONS = {  # docs/howto/scikit-learn.md explains each
    "check_fit_score_takes_y": "the second argument of fit is called labels; y= is understood too",
    "check_dtype_object": "numbers in an array of objects are refused, not converted",
    "check_classifiers_classes": "the class -1 means that an item has no label",
    "check_classifiers_multilabel_representation_invariance": "lists of 0 and 1 could be lists of tags: give an array",
    "check_supervised_y_2d": "a column of classes is refused, not flattened",
    "check_fit2d_1sample": "one item is refused by what it lacks, dissimilar pairs",
    "check_classifiers_one_label": "one class has no dissimilar pairs",
}
SMALL = {"fasth": {"hash_function": "ridge"}, "lfh": {"rounds": 2}, "lfh_decay": {"rounds": 2}, "sdh": {"anchors": 20}}


def small(name: str, bits: int = 8):
    """A method that is fitted in a fraction of a second."""
    if name == "adsh":
        return adsh.ADSH(bits, network="linear", outer=6, inner=2, samples=40, device="cpu", progress=False)
    method = create(name, bits=bits, progress=False, **SMALL.get(name.removesuffix("_d"), {}))
    if method.keeps_checkpoints:
        method.set_params(network="linear", outer=3, inner=1, samples=40, device="cpu")
    return method


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(120) % 3)
    return (4 * np.eye(3, 12)[labels] + rng.standard_normal((120, 12))).astype(np.float32), labels


@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("name", ["adsh", "itq", "lsh", "lfh"])
def test_check_estimator_passes_but_for_the_listed_exceptions(name):
    model = small(name, 4 if name == "adsh" else 2)
    if name == "adsh":
        model.set_params(network="mlp", outer=8, samples=None)
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {each["check_name"] for each in results if each["status"] == "failed"}
    assert failed <= set(EXCEPTIONS), [each for each in results if each["check_name"] in failed - set(EXCEPTIONS)]
    assert sum(each["status"] == "passed" for each in results) >= 40


def test_the_docs_explain_every_exception():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs/howto/scikit-learn.md").read_text(encoding="utf-8")
    assert [name for name in EXCEPTIONS if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", ["adsh", *METHODS])
def test_every_method_goes_into_pipelines_and_searches(name, data):
    X, y = data
    scores = cross_val_score(make_pipeline(StandardScaler(), small(name)), X, y, cv=2)
    assert scores.shape == (2,)
    assert ((scores > 0.3) & (scores <= 1)).all()
    found = GridSearchCV(small(name), {"bits": [4, 8]}, cv=2).fit(X, y)
    assert found.best_params_["bits"] in (4, 8)
    assert found.best_score_ == pytest.approx(found.cv_results_["mean_test_score"].max())
    assert found.predict(X[:5]).shape == (5,)


def test_a_pipeline_ends_in_a_classifier_of_the_codes(data):
    X, y = data
    model = make_pipeline(small("adsh"), KNeighborsClassifier(metric="hamming")).fit(X, y)
    assert model.score(X, y) > 0.9


def test_x_and_y_are_the_names_of_scikit_learn(data):
    X, y = data
    by_ours, by_theirs = small("adsh").fit(Y=X, labels=y), small("adsh").fit(X=X, y=y)
    assert np.array_equal(by_ours.database_codes_, by_theirs.database_codes_)
    for name in ("itq", "dsh"):
        assert np.array_equal(small(name).fit(X=X, y=y).encode(X), small(name).fit(X, y).encode(X))
    with pytest.raises(InputError, match="two names of one argument"):
        small("adsh").fit(X, y, X=X)


def test_transform_gives_the_bits_of_encode(data):
    X, y = data
    model = small("adsh")
    bits = model.fit_transform(X, y)
    assert bits.shape == (120, 8)
    assert set(np.unique(bits)) == {-1, 1}
    assert np.array_equal(pack(bits), model.encode(X))
    assert list(model.get_feature_names_out()[:2]) == ["adsh0", "adsh1"]


def test_score_is_the_map_of_new_queries(data):
    X, y = data
    model = small("adsh").fit(X[:80], y[:80])
    expected = metrics.mean_average_precision(model.encode(X[80:]), model.database_codes_, y[80:], y[:80], bits=8)
    assert model.score(X[80:], y[80:]) == pytest.approx(expected)


def test_predict_is_the_commonest_class_at_the_smallest_distance(data):
    X, y = data
    names = np.array(["ant", "bee", "cat"])[y]
    model = small("lsh").fit(X[:80], names[:80])
    queries, database = model.encode(X[80:]), model.database_codes_
    for code, predicted in zip(queries, model.predict(X[80:]), strict=True):
        distance = np.bitwise_count(database ^ code).sum(axis=1)
        nearest = names[:80][distance == distance.min()]
        counts = {name: (nearest == name).sum() for name in np.unique(nearest)}
        assert counts[predicted] == max(counts.values())
    assert list(model.classes_) == ["ant", "bee", "cat"]


def test_items_with_several_labels_are_predicted_as_rows_of_0_and_1(data):
    X, y = data
    labels = np.eye(4, dtype=int)[y]
    labels[:, 3] = y == 0
    model = small("adsh", 16).set_params(network="mlp", outer=10).fit(X, labels)
    predicted = model.predict(X)
    assert predicted.shape == (120, 4)
    assert (predicted == labels).mean() > 0.9


def test_items_without_a_label_are_never_predicted(data):
    X, y = data
    model = small("adsh").fit(X, np.where(np.arange(120) < 60, y, -1))
    assert set(model.predict(X)) <= {0, 1, 2}
    assert list(model.classes_) == [0, 1, 2]


def test_a_loaded_model_predicts_as_before(data, tmp_path):
    X, y = data
    model = small("adsh").fit(X, y, save_to=tmp_path / "model")
    loaded = adsh.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.score(X, y) == model.score(X, y)
    small("itq").fit(X, y, save_to=tmp_path / "itq")
    with pytest.raises(InputError, match="does not know the labels"):
        adsh.load(tmp_path / "itq").predict(X)


def test_class_numbers_of_a_column_with_missing_values_are_classes(data):
    X, y = data
    holed = np.where(np.arange(120) < 20, np.nan, y.astype(float))
    by_floats, by_numbers = small("adsh").fit(X, holed), small("adsh").fit(X, np.where(np.isnan(holed), -1, y))
    assert np.array_equal(by_floats.database_codes_, by_numbers.database_codes_)
    with pytest.raises(InputError, match="continuous"):
        small("adsh").fit(X, y + 0.5)


def test_seed_and_random_state_are_one(data):
    model = adsh.ADSH(random_state=7)
    assert model.seed == model.random_state == 7
    assert model.bits == DEFAULT_BITS
    assert "random_state" not in model.get_params()
    assert model.set_params(random_state=3).get_params()["seed"] == 3
    assert create("itq", random_state=5).seed == create("dsh", random_state=5).seed == 5


@pytest.mark.parametrize("name", ["adsh", *METHODS])
def test_a_clone_has_the_same_parameters(name):
    model = small(name)
    assert clone(model).get_params() == model.get_params()
    assert is_classifier(model) == model.needs_labels


def test_attributes_of_a_fit_are_there_after_it(data):
    X, y = data
    model = small("adsh")
    for error in (NotFittedError, ScikitNotFitted):
        with pytest.raises(error):
            model.transform(X)
    assert not hasattr(model, "n_features_in_")
    assert model.fit(X, y).n_features_in_ == 12
    with pytest.raises(ValueError, match="X has 3 features, but ADSH is expecting 12"):
        model.transform(X[:, :3])
    with pytest.raises(ValueError, match="Reshape your data"):
        model.predict(X[0])
    assert np.array_equal(pickle.loads(pickle.dumps(model)).encode(X), model.encode(X))


def test_labels_of_another_number_are_refused_by_methods_that_ignore_them(data):
    with pytest.raises(InputError, match="labels are for 3 points"):
        small("itq").fit(data[0], [0, 1, 2])
