"""Errors are reported in one line, with status 2, and nothing is lost by it."""

from __future__ import annotations

import signal
import subprocess
import time

import numpy as np
import pytest

from .conftest import process

TRAIN = ("train", "blobs.npz", "--bits", 12, "--outer", 2, "--out", "model")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["train"], "no source is given"),
        (["train", "nowhere"], "'nowhere' is neither a source nor a path"),
        (["train", "digits", "--bits", "many"], "'many' is not a valid int"),
        (["train", "digits", "--bit", "12"], "--bits"),
        (["train", "digits", "--bits", "0"], "bits=0"),
        (["train", "digits", "--network", "resnet9000"], "network='resnet9000'"),
        (["train", "digits", "--network", "mlp"], "network 'mlp' takes features"),
        (["train", "digits", "--preset", "best"], "preset='best'"),
        (["train", "digits", "--outer", "0"], "outer=0"),
        (["train", "digits", "--seed", "-1"], "seed=-1"),
        (["train", "digits", "--device", "abacus"], "device='abacus'"),
        (["train", "digits", "--protocol", "59k"], "protocol='59k'"),
        (["train", "digits", "--unlabelled", "drop"], "unlabelled='drop'"),
        (["train", "digits", "--checkpoint-every", "-1"], "checkpoint_every=-1"),
        (["train", "digits", "--resume", "--overwrite"], "give one of them"),
        (["train", "digits", "--resume"], "--checkpoint-every"),
        (["train", "missing.npy"], "missing.npy does not exist"),
        (["train", "text.npy"], "text.npy cannot be read as an array"),
        (["train", "bare.npy"], "has no labels"),
        (["train", "bare.npy", "--labels", "short.npy"], "10 items and 7 labels"),
        (["train", "other.npz"], "other.npz holds things"),
        (["train", "digits", "--config", "none.toml"], "cannot read none.toml"),
        (["train", "--config", "broken.toml"], "broken.toml is not TOML"),
        (["train", "--config", "empty.toml"], "no table [train]"),
        (["train", "--config", "odd.toml"], "'bytes'"),
        (["train", "--config", "typed.toml"], "bits is 'twelve'"),
        (["train", "digits", "--out", "text.npy"], "is a file"),
        (["train", "digits", "--out", "photos"], "holds other files"),
        (["encode", "nowhere", "digits"], "nowhere is not a folder"),
        (["encode", "photos", "digits"], "no config.json"),
        (["encode", "photos", "digits", "--out", "codes.txt"], ".npz"),
        (["encode", "photos", "digits", "--out", "photos.npz/deep/x.npz"], "not a directory"),
        (["encode", "photos"], "Missing argument"),
        (["encode", "photos", "digits", "--engine", "spark"], "choose local or ray"),
        (["encode", "photos", "digits", "--index", "i"], "--index goes with --engine ray"),
        (["encode", "photos", "digits", "--partition", "9"], "--partition goes with --engine ray"),
        (["encode", "photos", "digits", "--engine", "ray", "--workers", "2"], "--workers goes with --engine local"),
        (["encode", "photos", "digits", "--runtime", "onnx"], "--runtime onnx goes with --engine ray"),
        (["data", "info", "nosuch://me:secret@photos/x"], "nosuch://me@photos/x cannot be used"),
        (["evaluate", "nowhere"], "nowhere is not a folder"),
        (["evaluate", "photos", "--out", "text.npy"], "is a file"),
        (["compare", "photos"], "at least two"),
        (["compare", "photos", "photos"], "cannot be read as a report"),
        (["info", "nowhere"], "nowhere is not a folder"),
        (["info"], "Missing argument"),
        (["data", "frob"], "No such command 'frob'"),
        (["data", "info"], "Missing argument"),
        (["data", "info", "nowhere"], "'nowhere' is neither a source nor a path"),
        (["data", "info", "photos"], "photos"),
        (["data", "info", "digits", "--sheet", "sheet.txt"], "call it .png"),
        (["data", "info", "digits", "--sheet", "text.npy/sheet.png"], "not a directory"),
        (["data", "get", "mnist"], "only cifar10"),
        (["features", "nowhere"], "'nowhere' is neither a source nor a path"),
        (["features", "digits", "--out", "features.txt"], ".npy"),
        (["features", "digits", "--network", "linear"], "'linear'"),
        (["demo", "--bits", "2000"], "bits=2000"),
        (["demo", "--out", "text.npy"], "is a file"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_in_one_line(refused, tmp_path, arguments, said):
    (tmp_path / "text.npy").write_text("not an array")
    (tmp_path / "photos.npz").write_text("")
    np.save(tmp_path / "bare.npy", np.zeros((10, 4)))
    np.save(tmp_path / "short.npy", np.arange(7))
    np.savez(tmp_path / "other.npz", things=np.zeros(3))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/one.jpg").write_bytes(b"")
    (tmp_path / "broken.toml").write_text("[train\n")
    (tmp_path / "empty.toml").write_text("bits = 12\n")
    (tmp_path / "odd.toml").write_text('[train]\nsource = "digits"\nbytes = 2\n')
    (tmp_path / "typed.toml").write_text('[train]\nsource = "digits"\nbits = "twelve"\n')
    assert said in refused(*arguments)
    assert (tmp_path / "photos/one.jpg").exists()


def test_a_trained_model_is_not_replaced_unasked(adsh, refused, blob_file):
    adsh(*TRAIN)
    before = (blob_file.parent / "model/model.safetensors").read_bytes()
    assert "--overwrite" in refused(*TRAIN, "--seed", 1)
    assert (blob_file.parent / "model/model.safetensors").read_bytes() == before
    assert adsh(*TRAIN, "--seed", 1, "--overwrite").status == 0
    assert (blob_file.parent / "model/model.safetensors").read_bytes() != before


def test_a_model_is_evaluated_only_on_the_database_it_learned(adsh, refused, blob_file):
    adsh(*TRAIN)
    assert "not the one the model learned" in refused("evaluate", "model", "--split-seed", 5)
    assert "number of items" in refused("evaluate", "model", "--data", "digits", "--protocol", "holdout")
    with np.load(blob_file) as held:
        np.savez(blob_file, features=held["features"], labels=held["labels"][::-1])
    assert "labels of items differ" in refused("evaluate", "model")


def test_a_model_without_queries_says_so(adsh, refused, blob_file):
    adsh(*TRAIN, "--protocol", "all")
    assert "leaves no queries" in refused("evaluate", "model")


def test_a_missing_extra_is_named_with_its_command(refused, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert "pip install 'adsh[baselines]'" in refused("train", "digits")


def test_missing_tensorboard_is_reported_before_training(refused, blob_file, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert "pip install 'adsh[track]'" in refused(*TRAIN, "--tensorboard")
    assert not (blob_file.parent / "model").exists()


@pytest.mark.parametrize("wish", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_says_how_to_continue(tmp_path, wish):
    run = process("train", "digits", "--outer", 2000, "--checkpoint-every", 1, "--out", "my run", folder=tmp_path)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("my run/checkpoints/checkpoint-*"))) < 2 and time.monotonic() < deadline:
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(wish)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert out == ""
    assert "adsh train --resume --out 'my run'" in err
    assert "Traceback" not in err


def test_a_reader_that_stops_reading_is_no_error(tmp_path):
    run = process("--help", folder=tmp_path, start=subprocess.Popen)
    assert run.stdout is not None
    run.stdout.close()
    assert run.wait(timeout=60) == 0
    assert run.stderr is not None
    assert run.stderr.read() == ""
    run.stderr.close()


def test_points_without_a_label_are_no_queries_and_are_evaluated_as_such(adsh, tmp_path, blobs):
    features, labels = blobs
    np.savez(tmp_path / "half.npz", features=features, labels=np.where(np.arange(300) % 2, labels, -1))
    assert adsh("train", "half.npz", "--bits", 12, "--outer", 10, "--out", "model").status == 0
    ended = adsh("evaluate", "model", "--json")
    assert ended.status == 0
    assert ended.json["queries"] == 15  # a tenth of the labelled
    assert ended.json["learned"]["map_expected"] > 0.9 * 135 / 285  # unlabelled items stand among the relevant


def test_copies_of_features_on_both_sides_are_refused_if_strict(refused, tmp_path, blobs):
    features, labels = blobs
    np.savez(tmp_path / "twice.npz", features=np.vstack([features] * 2), labels=np.concatenate([labels] * 2))
    assert "--drop-duplicates" in refused("train", "twice.npz", "--strict", "--outer", 1, "--out", "model")


def test_an_unfinished_run_is_distinguished_from_a_folder_of_something_else(adsh, refused, blob_file):
    (blob_file.parent / "half").mkdir()
    (blob_file.parent / "half/run.toml").write_text("[train]\n")
    assert "adsh train --resume --out" in refused("info", "half")


def test_seeds_that_no_generator_takes_are_refused(refused, blob_file):
    assert "below 2^63" in refused("train", "blobs.npz", "--seed", 1 << 64, "--out", "model")
