"""What ADSH refuses, in words, before training starts; and what a failed fit leaves as it was."""

import warnings

import numpy as np
import pytest
import torch

from adsh.errors import AdshWarning, InputError, NotFittedError

from ..data.test_items import LazyBatches
from .test_adsh import quick


def training_started(record):
    raise AssertionError("training started")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"bits": 0}, "1 to 1024"),
        ({"bits": 1025}, "1 to 1024"),
        ({"preset": "best"}, "choose one of"),
        ({"network": "resnext"}, "choose one of"),
        ({"network": torch.nn.Linear(8, 10)}, "last layer 12 wide"),
        ({"network": torch.nn.Linear(5, 12)}, "cannot take inputs of shape"),
        ({"outer": 0}, "outer=0"),
        ({"seed": -1}, "seed=-1"),
        ({"device": "gpu"}, "device='gpu'"),
        ({"progress": "never"}, "progress='never'"),
        ({"network": torch.nn.Flatten()}, "last layer 12 wide"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused_before_training(blobs, values, said):
    with pytest.raises(InputError, match=said):
        quick(**values).fit(*blobs, callback=training_started)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"labels": np.zeros(299, int)}, "299 points, but Y has 300"),
        ({"labels": np.zeros(300, int)}, "no dissimilar pair"),
        ({"labels": None}, r"either labels or similarity: fit\(Y, labels\)"),
        ({"Y": ["a.png"] * 300}, "takes features, but Y holds images"),
        ({"labels": np.arange(300)[:, None] % 3}, r"pass labels\.ravel\(\)"),
        ({"similarity": np.ones((300, 300))}, "not both"),
        ({"labels": None, "similarity": np.ones((299, 300))}, r"\(299, 300\), but these items need 300 x 300"),
        ({"labels": None, "similarity": np.zeros((300, 300))}, "holds 0"),
        ({"queries": np.zeros((5, 8))}, "query_labels"),
        ({"labels": None, "similarity": [[1, -1], [1]]}, "different lengths"),
        ({"queries": np.zeros((3, 8)), "query_labels": [7, 8, 9]}, "no query shares a label"),
        ({"query_labels": np.zeros(5)}, "go with queries"),
        ({"queries": np.zeros((5, 7)), "query_labels": np.arange(5)}, r"\(7,\).*\(8,\)"),
        ({"queries": np.zeros((5, 8)), "query_labels": np.arange(6)}, "6 points, but queries has 5"),
        ({"Y": np.full((300, 8), np.nan)}, "NaN"),
        ({"Y": np.zeros((300, 4, 4, 3), np.uint8)}, "use tiny"),
    ],
)
def test_data_that_cannot_be_used_is_refused_before_training(blobs, changed, said):
    given = {"Y": blobs[0], "labels": blobs[1]} | changed
    with pytest.raises(InputError, match=said):
        quick().fit(**given, callback=training_started)


def test_more_samples_than_points_warn_and_take_all(blobs):
    with pytest.warns(AdshWarning, match="samples=1000, but only 300 points can be sampled"):
        model = quick(samples=1000, outer=1).fit(*blobs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twin = quick(samples=300, outer=1).fit(*blobs)
    assert np.array_equal(model.database_codes_, twin.database_codes_)


def test_an_unlabelled_item_that_cannot_be_read_is_reported_before_training(blobs):
    points, labels = blobs
    labels = np.where(np.arange(300) < 200, labels, -1)
    spoiled = points.copy()
    spoiled[250] = np.nan
    source = LazyBatches(300, lambda i: spoiled[i])
    model = quick().fit(points, labels)
    before = model.database_codes_
    with pytest.raises(InputError, match="item 250"):
        model.fit(source, labels, callback=training_started)
    assert np.array_equal(model.database_codes_, before)  # the earlier fit is whole


def test_an_item_that_spoils_training_leaves_the_earlier_fit_whole(blobs):
    points, labels = blobs
    model = quick(samples=300).fit(points, labels)
    before = model.encode(points).tobytes(), model.database_codes_.tobytes()
    reads = []

    def read(i):
        reads.append(i)
        return points[i] * (np.nan if len(reads) > 400 else 1)

    with pytest.raises(InputError, match="NaN"):
        model.fit(LazyBatches(300, read), labels)
    assert (model.encode(points).tobytes(), model.database_codes_.tobytes()) == before


def test_multi_hot_labels_of_another_width_are_refused(blobs):
    points, labels = blobs
    hot = np.eye(3, dtype=int)[labels]
    model = quick().fit(points, hot)
    with pytest.raises(InputError, match="multi-hot of 5 columns, but the database has 3"):
        model.code_for(np.eye(5, dtype=int))
    with pytest.raises(InputError, match="query_labels are multi-hot of 4"):
        model.fit(points, hot, queries=points[:4], query_labels=np.eye(4, dtype=int))
    with pytest.raises(InputError, match="'cat': give one label"):
        model.code_for("cat")
    with pytest.raises(InputError, match="name them in the same way"):
        model.code_for(["2"])


def test_nothing_learned_is_given_before_fit():
    model = quick()
    for ask in (lambda: model.encode(np.zeros((1, 8))), lambda: model.database_codes_, lambda: model.code_for([1])):
        with pytest.raises(NotFittedError, match="call fit"):
            ask()


def test_items_of_another_shape_are_refused_by_encode(blobs):
    with pytest.raises(InputError, match="X has 7 features, but ADSH is expecting 8 features"):
        quick(outer=1).fit(*blobs).encode(np.zeros((2, 7)))
