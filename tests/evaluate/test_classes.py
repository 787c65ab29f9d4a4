"""New items, classes, intervals and chance, each beside a plain computation of it."""

import numpy as np
import pytest

import adsh
from adsh.errors import InputError
from adsh.evaluate import evaluate_codings, evaluate_model, read_report, write_report
from adsh.evaluate.classes import bootstrap_interval, by_class, nearest_classes
from adsh.evaluate.ranking import Ranking
from adsh.hamming.bits import pack
from adsh.labels import LabelSets

BITS = 6  # few, so that there are ties


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(0)
    return pack(rng.choice([-1, 1], size=(60, BITS))), rng.integers(5, size=60)


@pytest.fixture(params=["one label", "several labels"])
def labels(items, request):
    if request.param == "one label":
        return items[1]
    hot = (np.random.default_rng(1).random((60, 4)) < 0.4).astype(int)
    hot[hot.sum(axis=1) == 0, 0] = 1
    return hot


def each_among_the_others(codes, labels, measure):
    """`measure` of a ranking of each item against all others, one by one."""
    others = [np.delete(np.arange(len(codes)), i) for i in range(len(codes))]
    return [measure(Ranking(codes[[i]], codes[o], labels[[i]], labels[o], bits=BITS)) for i, o in enumerate(others)]


@pytest.mark.parametrize("ties", ["expected", "stable"])
@pytest.mark.parametrize("k", [None, 7])
def test_an_item_is_left_out_of_its_own_ranking(items, labels, ties, k):
    codes, _ = items
    ranking = Ranking(codes, codes, labels, labels, bits=BITS, leave_one_out=True)
    one_by_one = each_among_the_others(codes, labels, lambda one: one.mean_average_precision(k=k, ties=ties))
    np.testing.assert_allclose(ranking.average_precisions(k=k, ties=ties), one_by_one, atol=1e-12)
    assert ranking.database == 59


def test_all_metrics_leave_it_out(items, labels):
    codes, _ = items
    ranking = Ranking(codes, codes, labels, labels, bits=BITS, leave_one_out=True, graded=True)
    for measure in (
        lambda one: one.ndcg_at(20),
        lambda one: one.precision_at([1, 5])[1],
        lambda one: one.precision_recall_by_radius().precision[1],
        lambda one: one.chance(),
    ):
        assert measure(ranking) == pytest.approx(np.mean(each_among_the_others(codes, labels, measure)), abs=1e-12)


def test_other_queries_than_the_database_are_refused(items):
    codes, labels = items
    with pytest.raises(InputError, match="the same as queries and as database"):
        Ranking(codes[:10], codes[10:20], labels[:10], labels[10:20], bits=BITS, leave_one_out=True)


def test_chance_is_the_mean_over_random_orders(items):
    codes, labels = items
    rng = np.random.default_rng(2)
    ranking = Ranking(codes[:8], codes[8:], labels[:8], labels[8:], bits=BITS)
    means = []
    for _ in range(3000):
        order = rng.permutation(52)
        relevant = labels[8:][order] == labels[:8, None]
        precision = relevant.cumsum(axis=1) / np.arange(1, 53)
        means.append(((precision * relevant).sum(axis=1) / np.maximum(relevant.sum(axis=1), 1)).mean())
    assert ranking.chance() == pytest.approx(np.mean(means), abs=4 * np.std(means) / 3000**0.5)


def test_each_class_is_the_mean_over_its_queries():
    labels = LabelSets.of([["a"], ["b"], ["a", "b"], ["a"]])
    results = by_class(np.array([1.0, 0.2, 0.4, 0.7]), labels)
    assert [(result.name, result.queries) for result in results] == [("b", 2), ("a", 3)]
    assert [result.map for result in results] == pytest.approx([0.3, 0.7])


def test_the_interval_covers_the_true_mean_nearly_always():
    rng = np.random.default_rng(0)
    samples = rng.beta(2, 1, size=(200, 100))
    covered = [low <= 2 / 3 <= high for low, high in map(bootstrap_interval, samples)]
    assert 0.88 <= np.mean(covered) <= 0.99


def test_the_nearest_classes_are_named_and_shared_codes_first():
    codes = pack(np.array([[1, 1, 1, 1], [1, 1, 1, 1], [-1, -1, -1, -1], [1, 1, 1, 1], [-1, -1, -1, 1]]))
    pairs = nearest_classes(codes, LabelSets.of(["cat", "cat", "dog", "fox", "owl"]), 4)
    assert [(pair.first, pair.second, pair.distance) for pair in pairs] == [("cat", "fox", 0), ("dog", "owl", 1)]


def test_a_report_includes_new_items_and_classes(blobs, tmp_path):
    points, labels = blobs
    model = adsh.ADSH(8, outer=2, progress=False).fit(points[:60], labels[:60])
    evaluation = evaluate_model(model, points[60:], labels[60:], points[:60], labels[:60])
    new = evaluation.columns["new"]
    codes = model.encode(points[60:])
    ranking = Ranking(codes, codes, labels[60:], labels[60:], bits=8, leave_one_out=True)
    assert new.map_expected == ranking.mean_average_precision()
    assert new.map_interval[0] <= new.map_expected <= new.map_interval[1]
    assert new.map_classes == pytest.approx(np.mean([result.map for result in new.by_class]))
    page = write_report(evaluation, tmp_path / "report").read_text()
    assert "new items" in page
    assert "bits apart" in page
    assert read_report(tmp_path / "report") == [evaluation]


def test_one_query_has_no_others(items):
    codes, labels = items
    evaluation = evaluate_codings(
        codes[:1], {"learned": codes[1:]}, codes[:1], labels[:1], codes[1:], labels[1:], bits=BITS, name="x"
    )
    assert set(evaluation.columns) == {"learned"}
