"""MAP against the number of classes and their imbalance, on a few synthetic classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adsh.data import open_source
from adsh.data.sources.synthetic import class_features
from adsh.experiments import ExperimentConfig, reproduce
from adsh.experiments.experiment_data import open_data
from adsh.experiments.figures import classes
from adsh.experiments.result_store import ResultStore
from adsh.experiments.runner import measure


@pytest.fixture
def config(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(24), 60)
    features = 3 * rng.normal(size=(24, 12))[labels] + rng.normal(size=(len(labels), 12))
    np.savez(tmp_path / "many.npz", features=features.astype(np.float32), labels=labels)
    return ExperimentConfig(str(tmp_path / "many.npz"), outer=2, bits=(8,), methods=("adsh",))


@pytest.mark.parametrize("ratio", [1, 4, 16, 64])
def test_sizes_fall_to_the_ratio_and_the_database_stays_as_large(ratio):
    ids = np.repeat(np.arange(30), 200)
    queries, database = classes.draw(ids, 20, ratio, seed=3)
    sizes = np.sort(np.unique(ids[database], return_counts=True)[1])
    assert len(sizes) == 20
    assert sizes[-1] / sizes[0] == pytest.approx(ratio, rel=0.3)
    assert len(database) == pytest.approx(20 * 40, rel=0.01)
    assert np.unique(ids[queries], return_counts=True)[1].tolist() == [8] * 20
    assert not np.isin(queries, database).any()


def test_the_classes_of_a_small_count_are_among_those_of_a_large_one():
    ids = np.repeat(np.arange(30), 50)
    small, large = (set(ids[classes.draw(ids, count, 1, seed=0)[1]].tolist()) for count in (10, 20))
    assert small < large


def test_small_classes_give_what_they_have():
    ids = np.repeat([0, 1, 2], [100, 6, 3])
    queries, database = classes.draw(ids, 3, 1, seed=0)
    assert np.bincount(ids[queries]).tolist() == [8, 3, 1]
    assert np.bincount(ids[database]).tolist() == [40, 3, 2]


def test_counts_beyond_the_classes_of_the_source_are_left_out(config):
    settings = {(cell.option("classes"), cell.option("ratio")) for cell in classes.cells(config)}
    assert settings == {(10, 1), (20, 1), (20, 4), (20, 16), (20, 64)}
    assert {cell.option("head") for cell in classes.cells(config)} == {None, "bits"}
    assert len({cell.name for cell in classes.cells(config)}) == len(classes.cells(config))
    assert classes.lengths(replace(config, bits=ExperimentConfig("digits").bits)) == (16, 32, 64)


def test_the_published_objective_is_measured_next_to_todays_and_resumed(config, tmp_path):
    out = tmp_path / "out"
    store = ResultStore(out)
    for cell in classes.cells(config)[:2]:  # ten classes, with today's head and that of bits
        record = measure(cell, open_data(config))
        assert record["head"] == cell.option("head")
        assert (record["classes"], record["smallest"], record["largest"], record["database"]) == (10, 40, 40, 400)
        assert 0 < record["map_new_classes"] <= 1
        store.write(cell, {**record, "seconds": 1e6})
    outcome = reproduce(["classes"], config, out)
    assert outcome.failed == {}
    assert (outcome.ran, outcome.reused) == (8, 2)
    text = (out / "classes.md").read_text()
    assert "| classes, bits | ADSH | new | published objective | new | codes, published |" in text
    assert "| 20, 8 bits |" in text
    assert "| 64, 8 bits |" in text
    assert {path.name for path in out.glob("*.png")} == {"classes.png", "classes-imbalance.png"}


def test_several_labels_an_item_have_no_such_experiment(tmp_path):
    hot = np.eye(10, dtype=int)[np.arange(50) % 10]
    hot[0, 1] = 1
    np.savez(tmp_path / "several.npz", features=np.ones((50, 3), np.float32), labels=hot)
    assert classes.cells(ExperimentConfig(str(tmp_path / "several.npz"))) == []


def test_the_synthetic_source_is_the_same_each_time():
    source = open_source("synthetic")
    assert (source.array.shape, len(source.classes)) == ((36_000, 512), 200)
    first, again = (class_features(20, 3, seed=1) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], np.repeat(np.arange(20), 3))
