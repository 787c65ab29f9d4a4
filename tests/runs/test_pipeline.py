"""`adsh.train_and_index`: what `adsh train` does, as one call."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest

import adsh
from adsh.cli import train as train_command
from adsh.errors import AdshWarning, FolderError, InputError
from adsh.hamming.bits import pack
from adsh.labels import LabelSets
from adsh.runs import pipeline
from adsh.runs.class_warnings import warn_of_shared_codes
from adsh.runs.run_dir import RunFolder
from adsh.runs.settings import FILE_NAMES, TrainSettings


@pytest.fixture
def arrays(tmp_path, blobs):
    features, labels = blobs
    np.savez(tmp_path / "blobs.npz", features=features.astype(np.float32), labels=labels)
    return tmp_path / "blobs.npz"


def test_one_call_trains_evaluates_and_indexes(arrays, tmp_path, capsys):
    artifacts = adsh.train_and_index(arrays, tmp_path / "m", bits=8, outer=2, device="cpu", report=True, index=True)
    assert artifacts.report.is_file()
    assert set(artifacts.evaluation.columns) == {"learned", "network", "new"}
    with adsh.open_index(artifacts.index) as index:
        assert len(index) == 300  # the database and the queries
    assert artifacts.ingested.added == 300
    assert (adsh.load(tmp_path / "m").database_codes_ == artifacts.model.database_codes_).all()
    summary = artifacts.summary()
    assert (summary["bits"], summary["outer"], summary["points"]) == (8, 2, 270)
    assert summary["map"]["network"] == artifacts.evaluation.columns["network"].map_expected
    assert capsys.readouterr().err == ""  # no terminal, no progress
    again = adsh.train_and_index(arrays, tmp_path / "m", bits=8, outer=2, resume=True, index=True)
    assert again.was_complete
    assert (again.ingested.added, again.ingested.skipped) == (0, 300)


def test_arrays_get_a_model_alone_unless_more_is_requested(arrays, tmp_path):
    artifacts = adsh.train_and_index(TrainSettings.of(source=arrays, bits=8, outer=1), tmp_path / "m", seed=3)
    assert (artifacts.evaluation, artifacts.report, artifacts.index) == (None, None, None)
    assert artifacts.settings.seed == 3
    with pytest.raises(FolderError, match="holds a trained model"):
        adsh.train_and_index(arrays, tmp_path / "m", bits=8, outer=1)


def test_a_run_is_resumed_or_repeated_without_giving_its_settings_again(arrays, tmp_path):
    first = adsh.train_and_index(arrays, tmp_path / "m", bits=8, outer=1, seed=5)
    again = adsh.train_and_index(out=tmp_path / "m", resume=True)
    assert again.was_complete
    assert (again.settings.bits, again.settings.seed) == (8, 5)
    repeated = adsh.train_and_index(out=tmp_path / "other", config=tmp_path / "m" / "run.toml", seed=6)
    assert (repeated.settings.bits, repeated.settings.seed) == (8, 6)
    assert first.settings.source == repeated.settings.source


def test_an_unknown_setting_is_refused_with_the_names_there_are(arrays):
    with pytest.raises(InputError, match="there is no setting 'bit': choose from source, .*bits"):
        adsh.train_and_index(arrays, bit=8)


def test_an_interrupt_after_training_says_that_the_model_is_saved(arrays, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "build_index", stop)
    with pytest.raises(pipeline.IndexingInterrupted):
        adsh.train_and_index(arrays, tmp_path / "m", bits=8, outer=1, index=True)
    assert RunFolder(tmp_path / "m").finished


def test_every_setting_is_a_flag_of_the_command():
    flags = inspect.signature(train_command.command).parameters
    assert {field.name for field in fields(TrainSettings)} <= flags.keys()


def test_run_toml_keeps_the_older_names_and_both_are_read(tmp_path):
    settings = TrainSettings.of(source="digits", drop_duplicates=False, deterministic_shards=2)
    assert settings == TrainSettings.of(source="digits", skip_copies=False, parts=2)
    table = settings.table()
    assert set(FILE_NAMES.values()) <= table.keys()
    RunFolder(tmp_path).write_run({"train": table})
    assert TrainSettings.of(tmp_path / "run.toml") == settings


def test_strict_stands_for_both_and_gives_way_to_what_is_given(tmp_path):
    def left_out(**given):
        settings = TrainSettings.of(**{"source": "digits", **given})
        return settings.skip_bad, settings.drop_duplicates

    assert left_out() == (True, True)
    assert left_out(strict=True) == (False, False)
    assert left_out(strict=True, skip_bad=True) == (True, False)
    assert left_out(strict=False, drop_duplicates=False) == (True, False)
    RunFolder(tmp_path).write_run({"train": TrainSettings.of(source="digits").table()})
    assert left_out(config=tmp_path / "run.toml", strict=True) == (False, False)
    RunFolder(tmp_path).write_run({"train": {"source": "digits", "skip_bad": False, "skip_copies": False}})
    assert left_out(config=tmp_path / "run.toml") == (False, False)  # a run of an earlier version is resumed as it was


def test_classes_that_share_a_code_are_named_in_a_warning(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 12
    np.savez(tmp_path / "many.npz", features=rng.normal(size=(120, 6)).astype(np.float32), labels=labels)
    with pytest.warns(AdshWarning) as caught:
        adsh.train_and_index(tmp_path / "many.npz", tmp_path / "out", bits=3, outer=2, progress=False)
    few, shared = sorted((str(one.message) for one in caught), key=lambda text: "share a code" in text)
    assert few == "3 bits are few for 12 classes, so that some get near or equal codes: --bits 16 is advised"
    assert re.search(r"^\d+ and \d+ and \d+ more pairs of classes share a code, .*: give --bits 16$", shared)


@pytest.mark.parametrize(("bits", "preset"), [(8, "modern"), (12, "paper")])
def test_bits_that_do_are_not_warned_of(tmp_path, recwarn, bits, preset):
    labels = np.arange(120) % 10
    features = 4 * np.eye(10)[labels] + 0.1 * np.random.default_rng(0).normal(size=(120, 10))
    np.savez(tmp_path / "ten.npz", features=features.astype(np.float32), labels=labels)
    adsh.train_and_index(tmp_path / "ten.npz", tmp_path / "out", bits=bits, preset=preset, outer=3, progress=False)
    assert not [one for one in recwarn if "few for" in str(one.message)]


def test_classes_that_share_a_code_in_spite_of_their_bits_get_another_remedy():
    codes = pack(np.ones((2, 16)))
    model = SimpleNamespace(codes_labels=True, database_codes_=codes, bits=16, preset="paper")
    with pytest.warns(AdshWarning, match="cat and dog share a code, .*: give --preset modern, which chooses"):
        warn_of_shared_codes(model, LabelSets.of(["cat", "dog"]))
    warn_of_shared_codes(model, LabelSets.of([["cat", "dog"], ["dog", "owl"]]))  # no warning for several labels
