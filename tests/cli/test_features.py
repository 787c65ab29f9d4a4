"""`adsh features`: made once, gone on with after a kill, taken by `adsh train` as they lie."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from adsh import create_network
from adsh.data import ArrayDataset, ResizedDataset, open_source
from adsh.learn import LabelSets
from adsh.runs.features import make_features, plain_labels
from adsh.train import feature_cache

from ..data.image_cases import random_images, save


@pytest.fixture
def folder(tmp_path):
    for at in range(60):
        image = random_images(1, 12 + at % 5, 14, seed=at)[0] // 2 + 100 * (at % 2)
        save(tmp_path / "in" / "ba"[at % 2] / f"{at:02}.png", image.astype(np.uint8))
    return tmp_path / "in"


MAKE = ("features", "in", "--network", "tiny", "--size", 12, "--batch", 16, "--out", "f.npy")


def expected(folder):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = create_network("tiny", 1, (12, 12, 3)).eval()
    images = torch.from_numpy(ResizedDataset(open_source(folder), 12).__getitems__(range(60)))
    with torch.inference_mode():
        return network.features(images.permute(0, 3, 1, 2).float().div(255)).numpy()


def test_features_are_computed_and_trained_on_without_another_option(adsh, folder):
    summary = adsh(*MAKE, "--json").json
    assert (summary["items"], summary["width"], summary["network"]) == (60, 256, "tiny")
    np.testing.assert_allclose(np.load("f.npy", mmap_mode="r"), expected(folder), rtol=1e-4, atol=1e-5)
    dataset = open_source("f.npy")
    assert list(dataset.keys) == list(open_source(folder).keys)
    assert dataset.classes == ("a", "b")
    assert np.array_equal(dataset.labels.ids, open_source(folder).labels.ids)
    assert adsh("train", "f.npy", "--network", "linear", "--bits", 8, "--outer", 2, "--out", "m").status == 0
    assert adsh("evaluate", "m", "--json").json["queries"] == 6
    named = adsh("train", "f.npy", "--labels", "f.labels.npy", "--bits", 8, "--outer", 1, "--out", "n")
    assert named.status == 0


def test_a_stopped_run_goes_on_where_it_was(adsh, folder, monkeypatch):
    assert adsh(*MAKE[:-1], "whole.npy").status == 0
    monkeypatch.setattr(feature_cache, "_MARK_SECONDS", 0.0)
    forward, calls = feature_cache.FeatureFile.write, []

    def stop(self, indices, rows):
        forward(self, indices, rows)
        calls.append(indices)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as stopping:
        stopping.setattr(feature_cache.FeatureFile, "write", stop)
        ended = adsh(*MAKE)
    assert (ended.status, ended.err) == (130, "adsh: stopped; repeat the command to continue\n")
    assert not (folder.parent / "f.npy").exists()
    assert json.loads((folder.parent / ".f.npy.json").read_text())["done"] == 32
    assert adsh(*MAKE, "--json").json["done_before"] == 32
    assert (folder.parent / "f.npy").read_bytes() == (folder.parent / "whole.npy").read_bytes()
    assert not list(folder.parent.glob(".f.npy*"))
    assert adsh(*MAKE, "--json").json["done_before"] == 60  # nothing is left to do
    assert "60 of them computed before" in adsh(*MAKE).out


def test_features_of_something_else_are_refused_with_the_difference(adsh, refused, folder):
    adsh(*MAKE)
    assert "shape of items 10 x 10 x 3, not 12 x 12 x 3" in refused(*MAKE, "--size", 10)
    assert "network dsh_net, not tiny" in refused(
        "features", "in", "--network", "dsh_net", "--size", 12, "--out", "f.npy"
    )
    save(folder / "a/01.png", random_images(1, seed=7)[0])
    assert (
        "f.npy holds other features: items differ; files of items differ. Give another --out, or --overwrite"
        in refused(*MAKE)
    )
    assert adsh(*MAKE, "--overwrite").status == 0
    np.save("other.npy", np.zeros(3))
    assert "nothing says of what data" in refused(*MAKE[:-1], "other.npy")


def test_wrong_requests_are_reported_in_one_line(adsh, refused, folder, blob_file):
    assert "takes features" in refused("features", "in", "--network", "mlp")
    assert "takes images" in refused("features", "blobs.npz", "--network", "tiny")
    assert "ends in .npy" in refused("features", "in", "--network", "tiny", "--out", "f.txt")
    assert "batch=0" in refused("features", "in", "--network", "tiny", "--batch", 0)
    assert "no weight file" in refused("features", "in", "--network", "alexnet", "--weights", "nowhere.pth")
    (folder / "a/03.png").write_text("not an image")
    assert "1 of 60 items cannot be read" in refused(*MAKE)
    summary = adsh(*MAKE, "--skip-bad", "--json").json
    assert (summary["items"], [one["key"] for one in summary["unreadable"]]) == (59, ["a/03.png"])
    assert "a/03.png" in adsh(*MAKE, "--skip-bad").out


def test_labels_of_every_kind_survive(tmp_path):
    for labels in ([2, -1, 0, 2], ["x", "", "y", "x"], [["a", "b"], [], ["b"], ["a"]], [["a"], [], ["b"], ["a"]]):
        sets = LabelSets.of(labels)
        again = LabelSets.of(plain_labels(sets))
        for at in range(4):
            names = [sets.names[int(tag)] for tag in again.names_of(int(again.ids[at]))]
            assert tuple(names) == sets.names_of(int(sets.ids[at]))
    images = ArrayDataset(random_images(4, 8, 8), [["a", "b"], [], ["b"], ["a"]])
    make_features(images, tmp_path / "f.npy", network="tiny", device="cpu")
    held = open_source(tmp_path / "f.npy")
    assert (held.classes, held.labels.names_of(int(held.labels.ids[0]))) == (("a", "b"), ("a", "b"))


def test_a_full_disk_is_reported_before_anything_is_computed(refused, folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    assert "No space left on device" in refused(*MAKE)
