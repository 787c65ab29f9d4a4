"""Runs that take long have checkpoints unless declined; short ones have none."""

from __future__ import annotations

import numpy as np
import pytest

from adsh.errors import AdshError
from adsh.runs.settings import TrainSettings
from adsh.runs.train import is_resumable, train
from adsh.train import checkpoint
from adsh.train.callbacks import Callback


class Stop(Callback):
    """Ends a run after two iterations, as Ctrl-C does."""

    def on_iteration(self, record):
        if record["outer"] == 2:
            raise KeyboardInterrupt


@pytest.fixture
def settings(tmp_path, blobs):
    np.savez(tmp_path / "blobs.npz", features=blobs[0].astype(np.float32), labels=blobs[1])
    return {"source": tmp_path / "blobs.npz", "bits": 8, "outer": 4, "inner": 1, "network": "linear", "device": "cpu"}


def stopped(out, settings, **more):
    with pytest.raises(KeyboardInterrupt):
        train(TrainSettings.of(**settings, **more), out, callback=Stop())
    return is_resumable(out)


def test_a_short_run_writes_none(settings, tmp_path):
    assert not stopped(tmp_path / "out", settings)


def test_a_run_that_is_expected_to_take_long_goes_on_after_a_stop(settings, tmp_path, monkeypatch):
    whole = train(TrainSettings.of(**settings), tmp_path / "whole").model
    monkeypatch.setattr(checkpoint, "LONG", 0.0)
    monkeypatch.setattr(checkpoint, "PAUSE", 0.0)
    assert stopped(tmp_path / "out", settings)
    resumed = train(TrainSettings.of(**settings), tmp_path / "out", resume=True)
    assert np.array_equal(resumed.model.database_codes_, whole.database_codes_)
    assert not (tmp_path / "out/checkpoints").exists()  # nobody asked for them, and the model is there


def test_checkpoints_are_declined_by_0(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LONG", 0.0)
    monkeypatch.setattr(checkpoint, "PAUSE", 0.0)
    assert not stopped(tmp_path / "out", settings, checkpoint_every=0)
    with pytest.raises(AdshError, match="no checkpoints to resume from"):
        train(TrainSettings.of(**settings, checkpoint_every=0), tmp_path / "out", resume=True)


def test_those_that_were_requested_stay(settings, tmp_path):
    train(TrainSettings.of(**settings, checkpoint_every=2), tmp_path / "out")
    assert len(checkpoint.found(tmp_path / "out/checkpoints")) == 2
