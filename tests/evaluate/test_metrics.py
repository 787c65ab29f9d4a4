"""The public metrics: hand-computed rankings, the stable order, every kind of label, and the traps others fell into."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adsh
from adsh import metrics
from adsh.hamming.bits import pack, unpack
from tests.evaluate.cases import at_distances
from tests.reference import metrics as plain


def one_query(distances, grades, bits=12):
    return metrics.Ranking(*at_distances(distances, bits), relevance=np.array([grades]), bits=bits)


# By hand


def test_all_ties_give_the_mean_over_the_places_of_one_relevant_item():
    ranking = one_query([2, 2, 2, 2], [0, 1, 0, 0])
    assert ranking.mean_average_precision() == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, abs=1e-15)
    assert ranking.mean_average_precision(ties="stable") == 1 / 2
    assert ranking.average_precision_bounds() == pytest.approx((1 / 4, 1), abs=1e-15)
    assert ranking.precision_at([1, 2, 4]) == pytest.approx([1 / 4, 1 / 4, 1 / 4])
    assert ranking.recall_at([1, 2, 4]) == pytest.approx([1 / 4, 1 / 2, 1])


def test_no_ties_give_the_textbook_value_for_both_kinds_of_ties():
    ranking = one_query([0, 1, 2, 3, 4], [1, 0, 1, 0, 1])
    for ties in ("expected", "stable"):
        assert ranking.mean_average_precision(ties=ties) == pytest.approx((1 + 2 / 3 + 3 / 5) / 3, abs=1e-15)
        assert ranking.mean_average_precision(k=3, ties=ties) == pytest.approx((1 + 2 / 3) / 2, abs=1e-15)
        assert ranking.mean_average_precision(k=3, ties=ties, divisor="min") == pytest.approx((1 + 2 / 3) / 3)
        assert ranking.mean_average_precision(k=2, ties=ties, divisor="min") == pytest.approx(1 / 2)


def test_k_inside_a_tie_is_the_expectation_of_the_ratio_not_a_ratio_of_expectations():
    """1 relevant, then a tie of 1 relevant and 9 others, cut after its first: (1 + 1)/2 w.p. 1/10, else 1/1."""
    ranking = one_query([0] + [1] * 10, [1, 1] + [0] * 9)
    assert ranking.mean_average_precision(k=2) == pytest.approx(1.0)
    assert ranking.mean_average_precision(k=3) == pytest.approx(
        1 / 10 * 1.0 + 1 / 10 * (1 + 2 / 3) / 2 + 8 / 10 * 1.0, abs=1e-15
    )
    assert ranking.mean_average_precision(k=2, divisor="min") == pytest.approx((1 + 1 / 10) / 2, abs=1e-15)


def test_a_cut_before_any_relevant_item_is_certain_counts_zero_where_none_is_above_it():
    """A tie of 1 relevant and 1 other, cut in the middle: 1 or 0."""
    assert one_query([3, 3], [0, 1]).mean_average_precision(k=1) == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize("ties", ["expected", "stable"])
def test_queries_without_a_relevant_item_count_zero_and_are_reported(ties):
    queries, database = at_distances([0, 1, 1], 12)
    queries = np.repeat(queries, 2, axis=0)
    ranking = metrics.Ranking(queries, database, ["a", "b"], ["a", "c", "c"], bits=12)
    assert ranking.without_relevant == 1
    assert ranking.average_precisions(ties=ties).tolist() == [1.0, 0.0]
    assert ranking.mean_average_precision(ties=ties) == 0.5
    assert ranking.recall_at([3], ties=ties).tolist() == [0.5]
    assert ranking.ndcg_at(3, ties=ties) == 0.5


@pytest.mark.parametrize("ties", ["expected", "stable"])
@pytest.mark.parametrize("divisor", ["retrieved", "min"])
def test_k_beyond_the_database_is_the_whole_database(ties, divisor):
    ranking = one_query([0, 2, 2, 5], [0, 1, 0, 1])
    whole = ranking.mean_average_precision(ties=ties, divisor=divisor)
    assert ranking.mean_average_precision(k=4, ties=ties, divisor=divisor) == pytest.approx(whole, abs=1e-15)
    assert ranking.mean_average_precision(k=1000, ties=ties, divisor=divisor) == pytest.approx(whole, abs=1e-15)
    assert ranking.precision_at([1000], ties=ties).tolist() == [0.5]


def test_look_ups_by_radius_by_hand():
    queries, database = at_distances([1, 1, 3, 4], 4)
    ranking = metrics.Ranking(queries, database, [7], [7, 0, 7, 0], bits=4)
    curve = ranking.precision_recall_by_radius()
    assert curve.radius.tolist() == [0, 1, 2, 3, 4]
    assert curve.precision == pytest.approx([0, 1 / 2, 1 / 2, 2 / 3, 1 / 2])
    assert curve.recall == pytest.approx([0, 1 / 2, 1 / 2, 1, 1])
    assert curve.returned.tolist() == [0, 2, 2, 3, 4]
    assert curve.empty.tolist() == [1, 0, 0, 0, 0]
    assert ranking.precision_recall_by_radius(empty="one").precision[0] == 1
    assert np.isnan(ranking.precision_recall_by_radius(empty="skip").precision[0])
    relevant, others = ranking.pairs_by_distance
    assert relevant.tolist() == [0, 1, 0, 1, 0]
    assert others.tolist() == [0, 1, 0, 0, 1]


def test_an_empty_look_up_is_left_out_of_the_mean_only_when_skipped():
    query, database = at_distances([0], 4)
    queries = np.concatenate([query, ~query & 0b11110000])
    mean = [
        metrics.precision_recall_by_radius(queries, database, [1, 1], [1], bits=4, empty=empty).precision[0]
        for empty in ("zero", "skip", "one")
    ]
    assert mean == [0.5, 1.0, 1.0]


def test_ndcg_by_hand_with_labels_shared():
    queries, database = at_distances([0, 1, 2], 12)
    labels = [["sky"], ["sky", "sea"], ["city"]]
    got = metrics.ndcg_at(queries, database, [["sky", "sea"]], labels, bits=12, k=2)
    assert got == pytest.approx((1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3)), abs=1e-15)
    linear = metrics.ndcg_at(queries, database, [["sky", "sea"]], labels, bits=12, k=2, gain="linear")
    assert linear == pytest.approx((1 + 2 / np.log2(3)) / (2 + 1 / np.log2(3)), abs=1e-15)


# Against a plain implementation


def random_case(seed, bits, n=60, q=7, codes=None, tags=4):
    """Random codes and tag sets; `codes` limits how many distinct database codes there are."""
    rng = np.random.default_rng(seed)
    table = rng.choice([-1, 1], size=(codes or n, bits))
    database = table[rng.integers(0, len(table), n)] if codes else table
    queries = rng.choice([-1, 1], size=(q, bits))
    hot = rng.random((n + q, tags)) < 0.4
    return queries, database, hot[:q], hot[q:]


def tags(hot):
    return [np.flatnonzero(row).tolist() for row in hot]


@given(st.integers(0, 10_000), st.sampled_from([1, 7, 12, 48, 64, 65, 130, 300]), st.sampled_from([None, 3]))
@settings(max_examples=60)
def test_the_stable_value_equals_a_plain_stable_sort(seed, bits, codes):
    queries, database, query_hot, database_hot = random_case(seed, bits, codes=codes)
    ranking = metrics.Ranking(pack(queries), pack(database), query_hot, database_hot, bits=bits)
    ranked = [
        plain.stable_order(distances, grades)
        for distances, grades in zip(
            plain.hamming(queries, database), plain.shared(tags(query_hot), tags(database_hot)), strict=True
        )
    ]
    for k in (None, 1, 10, 1000):
        for divisor in ("retrieved", "min"):
            want = [plain.average_precision(r, k, divisor) for r in ranked]
            got = ranking.average_precisions(k=k, ties="stable", divisor=divisor)
            assert got == pytest.approx(want, abs=1e-12)
    ks = [1, 5, 60]
    assert ranking.precision_at(ks, ties="stable") == pytest.approx(
        [np.mean([plain.precision(r, k) for r in ranked]) for k in ks], abs=1e-12
    )
    assert ranking.recall_at(ks, ties="stable") == pytest.approx(
        [np.mean([plain.recall(r, k) for r in ranked]) for k in ks], abs=1e-12
    )
    assert ranking.ndcg_at(10, ties="stable") == pytest.approx(np.mean([plain.ndcg(r, 10) for r in ranked]), abs=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 70), st.sampled_from(["zero", "one"]))
@settings(max_examples=30)
def test_look_ups_equal_a_plain_implementation(seed, bits, empty):
    queries, database, query_hot, database_hot = random_case(seed, bits)
    curve = metrics.precision_recall_by_radius(
        pack(queries), pack(database), query_hot, database_hot, bits=bits, empty=empty
    )
    distances, grades = plain.hamming(queries, database), plain.shared(tags(query_hot), tags(database_hot))
    value = 1.0 if empty == "one" else 0.0
    want = np.mean([plain.radius_curve(d, g, bits, value) for d, g in zip(distances, grades, strict=True)], axis=0)
    assert np.stack([curve.precision, curve.recall, curve.returned], axis=1) == pytest.approx(want, abs=1e-12)


@given(st.integers(0, 10_000))
def test_the_stable_value_and_the_expected_one_lie_within_the_bounds(seed):
    queries, database, query_hot, database_hot = random_case(seed, bits=12, codes=5)
    ranking = metrics.Ranking(pack(queries), pack(database), query_hot, database_hot, bits=12)
    for k in (None, 10):
        low, high = ranking.average_precision_bounds(k=k)
        for ties in ("expected", "stable"):
            assert low - 1e-12 <= ranking.mean_average_precision(k=k, ties=ties) <= high + 1e-12


@pytest.mark.parametrize("ties", ["expected", "stable"])
def test_all_kinds_of_labels_and_of_relevance_agree(ties):
    rng = np.random.default_rng(0)
    queries, database = rng.choice([-1, 1], size=(2, 40, 24))
    classes, query_classes = rng.integers(0, 3, 40), rng.integers(0, 4, 40)
    names = np.array(["cat", "dog", "car", "sea"])
    matrix = query_classes[:, None] == classes
    import scipy.sparse as sparse

    options = {"bits": 24, "k": 15, "ties": ties}
    want = metrics.average_precisions(pack(queries), pack(database), query_classes, classes, **options)
    for a, b in [
        (names[query_classes], names[classes]),
        ([[names[c]] for c in query_classes], [{names[c]} for c in classes]),
        (np.eye(4)[query_classes], np.eye(4)[classes]),
        (adsh.LabelSets(query_classes, np.eye(4)), adsh.LabelSets(classes, np.eye(4))),
    ]:
        got = metrics.average_precisions(pack(queries), pack(database), a, b, **options)
        assert got == pytest.approx(want, abs=1e-14)
    for given_matrix in (matrix, matrix.astype(float), 3 * matrix, sparse.csr_matrix(matrix), sparse.coo_array(matrix)):
        got = metrics.average_precisions(pack(queries), pack(database), relevance=given_matrix, **options)
        assert got == pytest.approx(want, abs=1e-14)


def test_several_metrics_come_from_one_count(monkeypatch):
    from adsh.evaluate import ranking as module

    queries, database, query_hot, database_hot = random_case(0, 16)
    calls = []
    monkeypatch.setattr(module, "count", lambda *a, **o: calls.append(o) or real(*a, **o))
    real = sys.modules["adsh.evaluate.counting"].count
    ranking = metrics.Ranking(pack(queries), pack(database), query_hot, database_hot, bits=16, graded=True)
    ranking.mean_average_precision(k=10)
    ranking.precision_at([1, 5])
    ranking.precision_recall_by_radius()
    ranking.ndcg_at(10)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("name", "given", "keyword_options"),
    [
        ("mean_average_precision", (), {"k": 9, "ties": "stable", "divisor": "min"}),
        ("average_precisions", (), {"k": 9, "ties": "stable", "divisor": "min"}),
        ("average_precision_bounds", (), {"k": 9, "divisor": "min"}),
        ("precision_at", ([3, 8],), {"ties": "stable"}),
        ("recall_at", ([3, 8],), {"ties": "stable"}),
        ("precision_recall_by_radius", (), {"empty": "one"}),
        ("ndcg_at", (9,), {"gain": "linear", "ties": "stable"}),
    ],
)
def test_each_function_is_the_method_of_the_same_name(name, given, keyword_options):
    """With every argument unlike its default, by labels and by relevance."""
    queries, database, query_hot, database_hot = random_case(3, 12, codes=5)
    codes, grades = (pack(queries), pack(database)), plain.shared(tags(query_hot), tags(database_hot))
    method = getattr(metrics.Ranking(*codes, query_hot, database_hot, bits=12), name)
    keywords = dict(zip({"ndcg_at": ["k"]}.get(name, ["ks"]), given, strict=False)) | keyword_options
    want = method(*given, **keyword_options)
    for labels, options in (((query_hot, database_hot), {}), ((), {"relevance": grades})):
        got = getattr(metrics, name)(*codes, *labels, bits=12, **keywords, **options)
        np.testing.assert_allclose(flat(got), flat(want), atol=1e-14)
    for argument in keyword_options:  # each tells
        other = method(*given, **{key: value for key, value in keyword_options.items() if key != argument})
        assert not np.allclose(flat(other), flat(want)), argument


def flat(value):
    parts = vars(value).values() if isinstance(value, metrics.RadiusCurve) else [value]
    return np.concatenate([np.ravel(part) for part in parts])


def test_graded_counts_give_the_same_average_precision():
    queries, database, query_hot, database_hot = random_case(1, 16, codes=4)
    for graded in (False, True):
        ranking = metrics.Ranking(pack(queries), pack(database), query_hot, database_hot, bits=16, graded=graded)
        values = ranking.average_precisions(k=20)
        assert values == pytest.approx(
            metrics.average_precisions(pack(queries), pack(database), query_hot, database_hot, bits=16, k=20)
        )


def test_equal_queries_are_counted_once_and_reported_each():
    queries, database, query_hot, database_hot = random_case(2, 12)
    again = np.array([3, 0, 3, 3, 1, 0])
    one_by_one = metrics.average_precisions(pack(queries), pack(database), query_hot, database_hot, bits=12)
    got = metrics.average_precisions(pack(queries[again]), pack(database), query_hot[again], database_hot, bits=12)
    assert got == pytest.approx(one_by_one[again], abs=1e-15)


# Traps met in public programs


@pytest.mark.parametrize("k", [-1, 0, 2.5, True, "5"])
def test_a_k_that_is_no_number_of_items_is_refused(k):
    """[:topk] with topk = -1 drops the last item."""
    with pytest.raises(adsh.errors.InputError, match="whole number from 1"):
        one_query([0, 1], [1, 0]).mean_average_precision(k=k)


def test_the_order_of_the_database_does_not_move_the_expected_value():
    """A class-sorted database flatters a stable sort; the expectation does not see it."""
    rng = np.random.default_rng(0)
    classes = np.sort(rng.integers(0, 4, 200))
    table = rng.choice([-1, 1], size=(2, 12))  # two codes for four classes
    database, queries = table[classes // 2], table[[0, 0, 1, 1]]
    shuffle = rng.permutation(200)
    values = {
        ties: [
            metrics.mean_average_precision(
                pack(queries), pack(database[order]), np.arange(4), classes[order], bits=12, ties=ties
            )
            for order in (np.arange(200), shuffle)
        ]
        for ties in ("expected", "stable")
    }
    assert values["expected"][0] == pytest.approx(values["expected"][1], abs=1e-14)
    assert abs(values["stable"][0] - values["stable"][1]) > 0.01


def test_twelve_bits_are_as_good_as_sixteen():
    """12 is not a multiple of 8, and bits are not bytes."""
    queries, database, query_hot, database_hot = random_case(5, 12)
    padded = [np.pad(signs, ((0, 0), (0, 4)), constant_values=-1) for signs in (queries, database)]
    twelve = metrics.Ranking(pack(queries), pack(database), query_hot, database_hot, bits=12)
    sixteen = metrics.Ranking(pack(padded[0]), pack(padded[1]), query_hot, database_hot, bits=16)
    assert twelve.mean_average_precision() == pytest.approx(sixteen.mean_average_precision(), abs=1e-15)
    assert len(twelve.precision_recall_by_radius().radius) == 13


def test_an_output_of_zero_never_makes_a_third_value():
    """sign(0) = 0 would put an item half a bit away from everything."""
    outputs = np.array([[0.0, 1.0, -1.0, 0.0]])
    assert set(unpack(pack(outputs), 4).ravel().tolist()) == {-1, 1}
    counted, others = metrics.Ranking(pack(outputs), pack(outputs), [0], [0], bits=4).pairs_by_distance
    assert counted.tolist() == [1, 0, 0, 0, 0]
    assert others.sum() == 0


def test_unlabelled_points_are_relevant_to_nothing():
    queries, database = at_distances([0, 0, 1], 4)
    assert metrics.mean_average_precision(queries, database, [1], [-1, -1, 1], bits=4) == pytest.approx(1 / 3)
    assert metrics.Ranking(queries, database, [-1], [-1, -1, 1], bits=4).without_relevant == 1


def test_metrics_need_no_torch():
    script = """
import sys
sys.modules["torch"] = None  # any import of it fails
import numpy as np
from adsh import metrics
codes = np.zeros((3, 1), dtype=np.uint8)
print(metrics.mean_average_precision(codes, codes, [0, 1, 1], [0, 1, 1], bits=8))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_ndcg_of_very_many_shared_labels_stays_finite():
    codes = np.zeros((2, 1), np.uint8)
    many = list(range(1100))
    assert metrics.ndcg_at(codes[:1], codes, [many], [many, [1]], bits=8, k=2) == pytest.approx(0.815, abs=0.01)


def test_a_given_sparse_relevance_is_left_as_it_was():
    import scipy.sparse

    given = scipy.sparse.csr_array((np.ones(2, int), [0, 0], [0, 2]), shape=(1, 2))
    codes = np.zeros((2, 1), np.uint8)
    metrics.mean_average_precision(codes[:1], codes, relevance=given, bits=8)
    assert given.nnz == 2
