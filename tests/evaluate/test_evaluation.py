import numpy as np
import pytest

import adsh
from adsh.errors import InputError
from adsh.evaluate.evaluation import Evaluation, bit_statistics, evaluate_codes, evaluate_model
from adsh.hamming.bits import pack


@pytest.fixture(scope="module")
def evaluated(digits):
    images = np.repeat((digits.database.reshape(-1, 8, 8, 1) * 15).astype(np.uint8), 3, axis=3)[:400]
    queries = np.repeat((digits.queries.reshape(-1, 8, 8, 1) * 15).astype(np.uint8), 3, axis=3)[:60]
    labels, query_labels = digits.labels[:400], digits.query_labels[:60]
    model = adsh.ADSH(12, network="tiny", outer=8).fit(images, labels)
    evaluation = evaluate_model(model, queries, query_labels, images, labels, cases=3, about={"protocol": "digits"})
    return model, evaluation, (queries, query_labels, images, labels)


def test_both_columns_are_those_of_the_metrics(evaluated):
    model, evaluation, (queries, query_labels, images, labels) = evaluated
    codes = model.encode(queries)
    assert set(evaluation.columns) == {"learned", "network", "new"}
    for name, database in (("learned", model.database_codes_), ("network", model.encode(images))):
        column = evaluation.columns[name]
        given = (codes, database, query_labels, labels)
        assert column.map_expected == adsh.metrics.mean_average_precision(*given, bits=12)
        assert column.map_stable == adsh.metrics.mean_average_precision(*given, bits=12, ties="stable")
        assert column.map_lowest <= column.map_expected <= column.map_highest
        assert column.precision == adsh.metrics.precision_at(*given, bits=12, ks=column.ks).tolist()
        assert max(column.ks) <= 400
        assert len(column.radius_precision) == 13
        assert column.radius_returned[-1] == 400
        assert sum(column.similar_pairs) + sum(column.dissimilar_pairs) == 60 * 400
        assert column == evaluate_codes(codes, database, query_labels, labels, bits=12)
    assert evaluation.about["network"] == "tiny"
    assert evaluation.about["protocol"] == "digits"
    assert evaluation.history == model.history_


def test_map_at_k_takes_the_requested_divisor(evaluated):
    model, _, (queries, query_labels, images, labels) = evaluated
    by = {
        divisor: evaluate_model(model, queries, query_labels, images, labels, k=20, divisor=divisor, cases=0)
        for divisor in ("retrieved", "min")
    }
    assert by["retrieved"].columns["network"].map_expected >= by["min"].columns["network"].map_expected
    assert by["min"].k == 20


def test_an_evaluation_survives_json(evaluated):
    import json

    _, evaluation, _ = evaluated
    assert Evaluation.from_json(json.loads(json.dumps(evaluation.to_json()))) == evaluation
    query = evaluation.to_json()["cases"]["learned"][0]["query"]
    assert list(query) == ["index", "label", "picture", "distance", "relevant"]  # as files have always had them
    with pytest.raises(InputError, match="not an evaluation"):
        Evaluation.from_json({"columns": {}})


def test_cases_show_the_nearest_first_and_say_which_are_wrong(evaluated):
    model, evaluation, (queries, query_labels, images, labels) = evaluated
    codes = model.encode(queries)
    for name, database in (("learned", model.database_codes_), ("network", model.encode(images))):
        assert len(evaluation.cases[name]) == 3
        for case in evaluation.cases[name]:
            distance = np.bitwise_count(database ^ codes[case.query.index]).sum(axis=1)
            assert [shown.distance for shown in case.found] == sorted(distance)[:10]
            for shown in case.found:
                assert shown.distance == distance[shown.index]
                assert shown.relevant == (labels[shown.index] == query_labels[case.query.index])
                assert shown.label == str(labels[shown.index])
                assert shown.image.startswith("data:image/png;base64,")


def test_features_have_cases_without_images(blobs):
    points, labels = blobs
    model = adsh.ADSH(8, outer=2, samples=60).fit(points, labels)
    evaluation = evaluate_model(model, points[:9], labels[:9], points, labels)
    assert evaluation.cases["learned"][0].found[0].image is None


def test_another_database_than_the_fitted_one_is_refused(evaluated):
    model, _, (queries, query_labels, images, labels) = evaluated
    with pytest.raises(InputError, match="database has 100 items, but the model was fitted on 400"):
        evaluate_model(model, queries, query_labels, images[:100], labels[:100])


def test_an_unknown_option_is_a_type_error_as_of_any_function(evaluated):
    model, _, (queries, query_labels, images, labels) = evaluated
    with pytest.raises(TypeError, match=r"evaluate_model\(\) got an unexpected keyword argument 'case'"):
        evaluate_model(model, queries, query_labels, images, labels, case=3)


def test_bit_statistics_equal_numpys():
    signs = np.random.default_rng(0).choice([-1, 1], size=(50, 11), p=[0.3, 0.7])
    signs[:, 3] = 1  # a bit that never varies
    signs[:, 5] = -signs[:, 4]
    balance, correlation, rows = bit_statistics(pack(signs), 11)
    vary = [b for b in range(11) if b != 3]
    np.testing.assert_allclose(balance, (signs > 0).mean(axis=0))
    np.testing.assert_allclose(correlation[np.ix_(vary, vary)], np.corrcoef(signs[:, vary].T), atol=1e-12)
    assert not correlation[3].any()
    assert correlation[4, 5] == pytest.approx(-1)
    assert rows == len(np.unique(signs, axis=0))
