"""MLflow and Weights & Biases, really run with a local store, in an environment of their own.

$ADSH_TEST_TRACKERS is a Python that has mlflow and wandb, whose pins are not ours; it borrows what it lacks from here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adsh
from adsh.errors import MissingExtraError
from adsh.train.trackers import MLflow, WeightsAndBiases, figures

PYTHON = os.environ.get("ADSH_TEST_TRACKERS")
real = pytest.mark.skipif(not PYTHON, reason="$ADSH_TEST_TRACKERS names no Python with mlflow and wandb")
FIT = """
import numpy as np, adsh
labels = np.arange(60) % 3
X = (4 * np.eye(3, 8)[labels] + np.random.default_rng(0).normal(size=(60, 8))).astype(np.float32)
model = adsh.ADSH(8, network="linear", outer=3, inner=1, device="cpu", progress=False)
"""


def run(program: str, folder: Path) -> str:
    ours = [entry for entry in sys.path if entry.endswith("site-packages")]
    path = os.pathsep.join([str(Path(adsh.__file__).parents[1])])
    script = f"import sys\nsys.path += {ours!r}\n{FIT}\n{program}"
    done = subprocess.run(
        [str(PYTHON), "-c", script], cwd=folder, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@real
def test_mlflow_has_the_figures_of_every_iteration(tmp_path):
    said = run(
        """
import mlflow
from adsh.train.trackers import MLflow
tracker = MLflow("birds", tracking_uri="sqlite:///runs.db")
model.fit(X, labels, callback=tracker)
tracker.close()
assert mlflow.active_run() is None
client = mlflow.MlflowClient()
[run] = client.search_runs([client.get_experiment_by_name("birds").experiment_id])
points = client.get_metric_history(run.info.run_id, "loss")
assert [point.step for point in points] == [1, 2, 3]
assert [point.value for point in points] == [record["loss"] for record in model.history_]
assert run.data.params["bits"] == "8" and run.data.params["recipe.outer"] == "3", run.data.params
with mlflow.start_run() as mine:
    tracker = MLflow()
    model.fit(X, labels, callback=tracker)
    tracker.close()
    assert mlflow.active_run().info.run_id == mine.info.run_id
print("logged")
""",
        tmp_path,
    )
    assert "logged" in said


@real
def test_weights_and_biases_runs_offline(tmp_path):
    run(
        """
from adsh.train.trackers import WeightsAndBiases
tracker = WeightsAndBiases(project="birds", mode="offline", dir=".")
model.fit(X, labels, callback=tracker)
import wandb
assert wandb.run.summary["loss"] == model.history_[-1]["loss"]
assert wandb.run.config["recipe.outer"] == "3"
tracker.close()
assert wandb.run is None
""",
        tmp_path,
    )
    [written] = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    assert written.stat().st_size > 0


def test_what_is_missing_is_named(monkeypatch):
    for name, callback in (("mlflow", MLflow), ("wandb", WeightsAndBiases)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingExtraError, match=f"pip install {name}"):
            callback()


def test_figures_are_those_of_the_history(blobs):
    seen: list[dict[str, float]] = []
    model = adsh.ADSH(8, network="linear", outer=2, inner=1, device="cpu", progress=False)
    model.fit(*blobs, callback=lambda record: seen.append(figures(record)))
    assert [one["loss"] for one in seen] == [record["loss"] for record in model.history_]
    assert all(np.isfinite(list(one.values())).all() for one in seen)
