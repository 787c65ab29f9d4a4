"""Float cosine and the linear classifier, next to scikit-learn and to plain rankings."""

import numpy as np
import pytest

from adsh.evaluate import baselines as module
from adsh.evaluate import evaluate_baselines
from adsh.methods.solvers.logistic import fit_logistic


def average_precision(scores, relevant, k=None, divisor="retrieved"):
    """The average precision of one ranking, place by place."""
    order = np.argsort(-scores, kind="stable")
    hits, total, first = 0, 0.0, k or len(order)
    for place, item in enumerate(order[:first], 1):
        if relevant[item]:
            hits += 1
            total += hits / place
    by = min(first, relevant.sum()) if divisor == "min" else hits
    return total / max(by, 1)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    labels = rng.choice(4, size=160, p=[0.6, 0.2, 0.1, 0.1])
    features = rng.normal(size=(4, 6))[labels] + 0.8 * rng.normal(size=(160, 6))
    return features.astype(np.float32), labels


@pytest.mark.parametrize(("k", "divisor"), [(None, "retrieved"), (15, "retrieved"), (15, "min")])
def test_cosine_is_a_ranking_by_cosine(classes, k, divisor, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 300)  # several blocks
    features, labels = classes
    cosine, _ = evaluate_baselines(features[:40], features[40:], labels[:40], labels[40:], k=k, divisor=divisor)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    similar = unit @ unit.T
    order = np.random.default_rng(0)
    order.permutation(40)
    stored = 40 + order.permutation(120)  # the order that ties are in
    expected = [average_precision(similar[i, stored], labels[stored] == labels[i], k, divisor) for i in range(40)]
    assert cosine.columns["network"].map_expected == pytest.approx(np.mean(expected), abs=1e-6)
    new = []
    for i in range(40):
        others = np.delete(np.arange(40), i)
        new.append(average_precision(similar[i, others], labels[others] == labels[i], k, divisor))
    assert cosine.columns["new"].map_expected == pytest.approx(np.mean(new), abs=1e-6)
    by_class = [np.mean(np.array(new)[labels[:40] == label]) for label in range(4)]
    assert cosine.columns["new"].map_classes == pytest.approx(np.mean(by_class), abs=1e-6)
    assert "learned" not in cosine.columns
    assert cosine.saw.startswith("nothing")


def test_the_classifier_is_the_balanced_logistic_regression(classes):
    linear = pytest.importorskip("sklearn.linear_model")
    features, labels = classes
    hot = np.eye(4, dtype=np.float32)[labels]
    ours = fit_logistic(features, hot, np.random.default_rng(0))
    scaled = (features - ours.mean) / ours.scale
    theirs = linear.LogisticRegression(C=1 / (ours.decay * 160), class_weight="balanced", max_iter=5000, tol=1e-8)
    probabilities = theirs.fit(scaled, labels).predict_proba(scaled)
    np.testing.assert_allclose(ours.probabilities(features), probabilities, atol=0.02)
    assert (ours.probabilities(features).argmax(axis=1) == theirs.predict(scaled)).mean() > 0.98


def test_the_classifier_ranks_by_the_probability_to_share_a_label(classes):
    features, labels = classes
    _, classifier = evaluate_baselines(features[:40], features[40:], labels[:40], labels[40:])
    assert set(classifier.columns) == {"learned", "network", "new"}
    assert classifier.columns["learned"].map_expected > classifier.columns["network"].map_expected
    assert "120 database items" in classifier.saw


def test_several_labels_unknown_labels_and_items_without_any(classes):
    features, _ = classes
    rng = np.random.default_rng(2)
    hot = (rng.random((160, 5)) < 0.3).astype(int)  # some have none
    hot[40:, 4] = 0  # a label that queries alone have
    cosine, classifier = evaluate_baselines(features[:40], features[40:], hot[:40], hot[40:])
    assert 0 < cosine.columns["new"].map_expected < 1
    assert 0 < classifier.columns["learned"].map_expected < 1
    assert f"{(hot[40:].any(axis=1)).sum()} database items" in classifier.saw


def test_many_items_are_sampled_and_the_result_says_so(classes, monkeypatch):
    features, labels = classes
    monkeypatch.setattr(module, "_QUERIES", 10)
    monkeypatch.setattr(module, "_DATABASE", 30)
    monkeypatch.setattr(module, "_TRAINING", 60)
    cosine, classifier = evaluate_baselines(features[:40], features[40:], labels[:40], labels[40:])
    assert (cosine.queries, cosine.database) == (10, 30)
    assert "60 of 120 database items" in classifier.saw
