"""Tuning by the real Optuna: on validation items alone, resumable, with a report and settings for the next run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from adsh.errors import InputError
from adsh.runs import tune as module
from adsh.runs.settings import TrainSettings
from adsh.runs.tune import tune

pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("tune") / "blobs.npz"
    labels = np.arange(200) % 4
    np.savez(path, features=(3 * np.eye(4, 12)[labels] + rng.normal(size=(200, 12))).astype(np.float32), labels=labels)
    return path


def settings(source: Path, **values):
    return TrainSettings.of(source=source, bits=8, outer=2, inner=1, network="linear", device="cpu", **values)


def test_a_study_goes_on_where_it_was_stopped(source, tmp_path):
    whole = tune(settings(source), tmp_path / "whole", 4)
    tune(settings(source), tmp_path / "parts", 2)
    parts = tune(settings(source), tmp_path / "parts", 4)
    assert [trial["lr"] for trial in parts.trials] == [trial["lr"] for trial in whole.trials]
    assert [trial["map"] for trial in parts.trials] == [trial["map"] for trial in whole.trials]
    assert len(tune(settings(source), tmp_path / "parts", 3).trials) == 4  # no more are needed
    with pytest.raises(InputError, match="a study of other settings"):
        tune(settings(source, seed=1), tmp_path / "parts", 5)


def test_the_first_trial_has_the_values_of_the_preset_so_the_best_is_no_worse(source, tmp_path):
    found = tune(settings(source), tmp_path, 3)
    assert found.preset == found.trials[0]["map"]
    assert found.score >= found.preset
    again = tune(settings(source, lr=0.02), tmp_path / "given", 1)
    assert again.trials[0]["lr"] == pytest.approx(0.02)


def test_queries_are_never_looked_at(source, tmp_path, monkeypatch):
    problem = module._Problem.of(settings(source))
    split = module.draw_split(module.prepare_inputs(module.open_source(source)), "holdout", 0).split
    assert not np.intersect1d(split.queries, np.concatenate([problem.validation, problem.training])).size
    assert not np.intersect1d(problem.validation, problem.training).size
    assert len(problem.validation) + len(problem.training) == len(split.database)


def test_the_report_and_the_settings_are_written(source, tmp_path):
    found = tune(settings(source), tmp_path, 2)
    summary = json.loads((tmp_path / "tune.json").read_text(encoding="utf-8"))
    assert summary["map"] == found.score
    assert len(summary["trials"]) == 2
    assert f"MAP {found.score:.4f}" in (tmp_path / "tune.md").read_text(encoding="utf-8")
    again = TrainSettings.of(tmp_path / "best.toml")
    assert again == found.settings
    assert again.lr == found.best["lr"]


def test_mistakes_are_refused(source, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="--trials 0"):
        tune(settings(source), tmp_path, 0)
    with pytest.raises(InputError, match="itq has no learning rate"):
        tune(TrainSettings.of(source=source, method="itq"), tmp_path, 1)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'adsh\[tune\]'"):
        tune(settings(source), tmp_path, 1)


def test_the_commands_tune(source, tmp_path):
    import subprocess

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "adsh", *map(str, arguments)],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    options = ("--bits", 8, "--outer", 2, "--network", "linear")
    found = json.loads(run("tune", source, "--trials", 2, *options, "-o", "study", "--json"))
    assert found["trials"] == 2
    run("train", source, "--tune", 2, *options, "--out", "model", "--json")
    trained = (tmp_path / "model/run.toml").read_text(encoding="utf-8")
    best = json.loads((tmp_path / "model-tuned/tune.json").read_text(encoding="utf-8"))["best"]
    assert f"lr = {best['lr']}" in trained
