import json
import re

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from adsh.cli.data import app
from adsh.data.sources import get_cifar10
from adsh.errors import FolderError, InputError


def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_info_shows_what_a_source_holds(tmp_path):
    text = run("info", "digits").output
    for line in (
        "items         1,797",
        "classes       10: 0 178, 1 182",
        "label sets    10",
        "similar rate  0.0995",
        "duplicates    0",
    ):
        assert line in text
    summary = json.loads(run("info", "digits", "--json", "--sheet", tmp_path / "sheet.png").stdout)
    assert {"items", "classes", "label_sets", "similar_rate", "duplicates"} <= summary.keys()
    with Image.open(summary["sheet"]) as image:
        assert image.size[0] > 500


def test_info_takes_arrays_with_and_without_labels(tmp_path):
    np.save(tmp_path / "f.npy", np.zeros((4, 3)))
    np.save(tmp_path / "y.npy", np.array([0, 0, 1, 1]))
    assert re.search(r"similar rate +none", run("info", tmp_path / "f.npy").output)
    summary = json.loads(run("info", tmp_path / "f.npy", "--labels", tmp_path / "y.npy", "--json").stdout)
    assert (summary["similar_rate"], summary["duplicates"]) == (pytest.approx(1 / 3), 3)


def test_info_lists_every_file_that_cannot_be_read(tmp_path):
    for name in ("a/1.png", "a/2.png", "b/3.png", "b/4.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4), (len(name), int(name[2]), 0)).save(tmp_path / name)
    for name in ("a/2.png", "b/3.png"):
        (tmp_path / name).write_text("not an image")
    with pytest.raises(InputError, match="2 of 4 items cannot be read: .*2.png.*3.png.*--skip-bad"):
        run("info", tmp_path, "--strict")
    assert re.search(r"items +2\n.*unreadable +2\n +a/2.png: .*\n +b/3.png: ", run("info", tmp_path).output, re.S)
    summary = json.loads(run("info", tmp_path, "--skip-bad", "--json").stdout)
    assert [one["key"] for one in summary["bad"]] == ["a/2.png", "b/3.png"]


def test_info_names_the_duplicates(tmp_path):
    for at, name in enumerate(("a/1.png", "a/2.png", "a/3.png", "b/4.png", "b/5.png")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4), (0, 0, at % 2)).save(tmp_path / name)
    text = run("info", tmp_path).output
    assert "duplicates    3" in text
    assert re.findall(r"^  (.*)$", text, re.MULTILINE) == [
        "a/3.png: the same as a/1.png",
        "b/4.png: the same as a/2.png, with other labels",
        "b/5.png: the same as a/1.png, with other labels",
    ]
    found = json.loads(run("info", tmp_path, "--json").stdout)["duplicate_items"]
    assert found[0] == {"key": "a/3.png", "same_as": "a/1.png", "same_labels": True}
    np.save(tmp_path / "f.npy", np.zeros((40, 3)))
    text = run("info", tmp_path / "f.npy").output
    assert "  20: the same as 0\n  and 19 more: --json lists them\n" in text


def test_get_downloads_into_the_root_or_the_folder_of_all(tmp_path, monkeypatch):
    roots = []
    monkeypatch.setattr(get_cifar10, "get_cifar10", lambda root, progress: roots.append(root) or root / "archive")
    monkeypatch.setenv("ADSH_DATA", str(tmp_path))
    assert str(tmp_path / "cifar10" / "archive") in run("get", "cifar10").output
    assert json.loads(run("get", "cifar10", "--root", tmp_path, "--json").stdout)["path"] == str(tmp_path / "archive")
    assert roots == [tmp_path / "cifar10", tmp_path]


def test_what_is_not_available_is_reported(tmp_path, monkeypatch):
    monkeypatch.delenv("ADSH_DATA", raising=False)
    with pytest.raises(InputError, match="only cifar10 can"):
        run("get", "imagenet")
    with pytest.raises(FolderError, match="needs a root"):
        run("get", "cifar10")
    with pytest.raises(FolderError, match="adsh data get cifar10"):
        run("info", "cifar10", "--root", tmp_path)
