"""The baselines of a run's report: on the features that the model takes, and from one pass over the images."""

import json
from dataclasses import replace

import numpy as np
import pytest

import adsh
from adsh.data import ArrayDataset
from adsh.errors import AdshWarning
from adsh.evaluate import evaluate_baselines, read_report
from adsh.evaluate.comparison_section import baselines_ahead
from adsh.networks.frozen import Frozen
from adsh.runs.evaluate import evaluate, load_run
from adsh.runs.input_features import input_features

pytestmark = [
    pytest.mark.usefixtures("no_figures"),
    pytest.mark.filterwarnings("ignore:the report has no figures"),
]


@pytest.fixture(scope="module")
def photos():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    images = rng.integers(0, 100, (40, 12, 12, 3)) + 150 * labels[:, None, None, None]
    return ArrayDataset(images.astype(np.uint8), labels, name="photos")


@pytest.fixture
def arrays(tmp_path, blobs):
    features, labels = blobs
    np.savez(tmp_path / "blobs.npz", features=features.astype(np.float32), labels=labels)
    return tmp_path / "blobs.npz"


def test_a_report_has_baselines_unless_they_are_declined(arrays, tmp_path):
    artifacts = adsh.train_and_index(arrays, tmp_path / "m", bits=8, outer=2, report=True, progress=False)
    evaluation = artifacts.evaluation
    assert [baseline.name for baseline in evaluation.baselines] == ["float cosine", "linear classifier"]
    assert read_report(artifacts.report.parent) == [evaluation]
    text = (artifacts.report.parent / "report.md").read_text()
    score = evaluation.baselines[1].columns["new"]
    assert f"{score.map_expected:.4f} ({score.map_interval[0]:.3f} to {score.map_interval[1]:.3f})" in text
    assert "learned from" in artifacts.report.read_text()
    summary = json.loads(json.dumps(artifacts.summary()))
    assert summary["baselines"]["linear classifier"]["new"] == score.map_expected
    inputs = load_run(tmp_path / "m")
    declined = evaluate(inputs, baselines=False)
    assert (declined.baselines, declined.baselines_missing) == ([], "they were declined")


def test_a_baseline_that_is_ahead_of_the_model_is_named(tmp_path):
    """Two bits for eight classes: at least two classes share each code, and a linear classifier tells them apart."""
    rng, labels = np.random.default_rng(0), np.arange(400) % 8
    features = 2.5 * rng.normal(size=(8, 12))[labels] + rng.normal(size=(400, 12))
    np.savez(tmp_path / "few.npz", features=features.astype(np.float32), labels=labels)
    with pytest.warns(AdshWarning, match="bits"):
        artifacts = adsh.train_and_index(
            tmp_path / "few.npz", tmp_path / "m", bits=2, outer=3, report=True, progress=False
        )
    evaluation = artifacts.evaluation
    theirs = evaluation.baselines[1].columns["new"].map_expected
    ours = evaluation.columns["new"].map_expected
    assert theirs > ours
    sentence = f"linear classifier has {theirs:.4f} for new items, the model {ours:.4f}"
    assert sentence in baselines_ahead(evaluation)
    assert len(baselines_ahead(evaluation)) == len(evaluation.columns)
    for page in (artifacts.report, artifacts.report.with_suffix(".md"), tmp_path / "m/README.md"):
        assert sentence in page.read_text(), page
    even = replace(evaluation, baselines=[replace(b, columns=evaluation.columns) for b in evaluation.baselines])
    assert baselines_ahead(even) == []


def test_features_of_a_frozen_network_are_collected_while_it_encodes(photos, monkeypatch):
    options = {"size": 32, "weights": None, "hidden": 16}
    model = adsh.ADSH(
        8, network="frozen:efficientnet_lite0", network_options=options, outer=2, device="cpu", progress=False
    )
    model.fit(photos.subset(range(10, 40)))
    queries, database = photos.subset(range(10)), photos.subset(range(10, 40))
    expected, passes = model.frozen_features, []
    original = Frozen.features
    monkeypatch.setattr(Frozen, "features", lambda self, x: passes.append(len(x)) or original(self, x))
    with input_features(model, queries, database) as features:
        model.encode(queries)
        model.encode_database(database)
        found = features()
    assert sum(passes) == 10  # the queries alone: those of the database are kept from training
    np.testing.assert_allclose(found.database, expected, atol=1e-5)
    assert found.queries.shape == (10, 1280)
    assert not any(module._forward_pre_hooks for module in model.network_.modules())
    scores = evaluate_baselines(found.queries, found.database, queries.labels, database.labels)
    assert scores[1].columns["learned"].map_expected == 1


def test_a_network_that_learned_its_own_features_has_none(photos):
    model = adsh.ADSH(8, network="tiny", outer=1, device="cpu", progress=False).fit(photos)
    with input_features(model, photos, photos) as features:
        assert "tiny learned its own features" in features().missing
