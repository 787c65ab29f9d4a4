"""Runs with a small held-out part are fitted again without each fold."""

import json

import numpy as np
import pytest

import adsh
from adsh.evaluate import read_report
from adsh.runs import cross_fit as module
from adsh.runs.evaluate import evaluate, load_run
from adsh.runs.settings import TrainSettings

pytestmark = [
    pytest.mark.usefixtures("no_figures"),
    pytest.mark.filterwarnings("ignore:the report has no figures"),
]


@pytest.fixture
def arrays(tmp_path, blobs):
    features, labels = blobs
    np.savez(tmp_path / "blobs.npz", features=features[:120].astype(np.float32), labels=labels[:120])
    return tmp_path / "blobs.npz"


def test_a_small_set_is_cross_fitted_and_every_item_is_a_query_once(arrays, tmp_path, monkeypatch):
    fitted = []
    monkeypatch.setattr(module, "evaluate_fold", lambda queries, *rest, **of: fitted.append(queries) or
                        original(queries, *rest, **of))  # fmt: skip
    artifacts = adsh.train_and_index(
        arrays, tmp_path / "m", bits=8, outer=2, report=True, progress=False, baselines=False
    )
    found = artifacts.evaluation.cross_fit
    assert (found.folds, found.queries, found.database) == (5, 120, 96)
    assert sorted(np.concatenate(fitted).tolist()) == list(range(120))
    assert set(found.columns) == {"learned", "network", "new"}
    assert found.columns["new"].map_expected > found.columns["new"].chance
    assert read_report(artifacts.report.parent) == [artifacts.evaluation]
    text = artifacts.report.read_text()
    assert "MAP, codes as learned, 5 folds" in text
    assert "MAP, 120 new items, 5 folds" in text
    assert "new items, 5 folds" in (tmp_path / "m" / "README.md").read_text()
    summary = json.loads(json.dumps(artifacts.summary()))
    assert summary["cross_fit"]["columns"]["new"]["map_expected"] == found.columns["new"].map_expected


original = module.evaluate_fold


def test_folds_are_declined_requested_or_left_out_with_a_reason(arrays, tmp_path, monkeypatch):
    adsh.train_and_index(arrays, tmp_path / "m", bits=8, outer=2, folds=0, report=True, progress=False)
    inputs = load_run(tmp_path / "m")
    assert inputs.settings.folds == 0
    assert evaluate(inputs).cross_fit is None
    calls = []
    assert evaluate(inputs, folds=3, on_fold=lambda done, of: calls.append((done, of))).cross_fit.folds == 3
    assert calls == [(0, 3), (1, 3), (2, 3), (3, 3)]
    monkeypatch.setattr(module, "_MOST_SECONDS", 0.0)
    long = evaluate(inputs, folds=None)
    assert long.cross_fit is None
    assert "--folds 5 requests them" in long.cross_fit_missing
    assert evaluate(inputs, folds=2).cross_fit.folds == 2
    with pytest.raises(adsh.AdshError, match="folds=-1: give 2 or more"):
        evaluate(inputs, folds=-1)


def test_a_large_held_out_part_is_enough(arrays, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "is_small", lambda queries, database: False)
    artifacts = adsh.train_and_index(arrays, tmp_path / "m", bits=8, outer=1, report=True, progress=False)
    assert (artifacts.evaluation.cross_fit, artifacts.evaluation.cross_fit_missing) == (None, None)


def test_methods_on_features_are_cross_fitted_and_networks_on_images_are_not(arrays, tmp_path):
    artifacts = adsh.train_and_index(arrays, tmp_path / "itq", bits=4, method="itq", report=True, progress=False)
    assert set(artifacts.evaluation.cross_fit.columns) == {"learned", "hashed", "new"}
    images = np.random.default_rng(0).integers(0, 255, size=(40, 8, 8, 3), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(40) % 2)
    settings = {"network": "tiny", "outer": 1, "report": True, "progress": False}
    evaluation = adsh.train_and_index(tmp_path / "images.npz", tmp_path / "t", bits=4, **settings).evaluation
    assert evaluation.cross_fit is None
    assert "tiny learned its own features" in evaluation.cross_fit_missing


def test_a_frozen_network_is_fitted_again_on_its_features_alone():
    settings = TrainSettings("photos", network="frozen:efficientnet_lite0", weights="own.pth", bits=12)
    again = module._on_features(settings)
    assert (again.network, again.weights, again.bits) == ("mlp", None, 12)
