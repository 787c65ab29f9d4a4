"""Without torch, exported models are searched and indexed, and whatever needs torch says so in a line."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import adsh as package
from adsh.export.onnx import export

from ..data.image_cases import random_images, save

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

BLOCKED = "import sys; sys.modules['torch'] = None; from adsh.cli import main; main()"  # any import of torch fails


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """photos/, a model of them with its index, model-onnx/, and new/."""
    folder = tmp_path_factory.mktemp("world")
    for at in range(40):
        image = random_images(1, 24, 24, seed=at)[0] // 3 + 120 * (at % 2)
        save(folder / ("photos" if at < 36 else "new") / ("cat", "dog")[at % 2] / f"{at}.png", image.astype(np.uint8))
    package.train_and_index(
        folder / "photos", folder / "m", network="tiny", bits=12, outer=2, size=16, report=False, progress=False
    )
    export(folder / "m", folder / "m-onnx")
    return folder


def run(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_an_export_searches_as_the_model_does(world):
    done = run(world, "search", "m/index", "new/cat/36.png", "new/dog/37.png", "--model", "m-onnx", "--json")
    assert done.returncode == 0, done.stderr
    with_torch = subprocess.run(
        [sys.executable, "-m", "adsh", "search", "m/index", "new/cat/36.png", "new/dog/37.png", "--json"],
        cwd=world, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["queries"] == json.loads(with_torch.stdout)["queries"]
    by_outputs = run(world, "search", "m/index", "new/cat/36.png", "--model", "m-onnx", "--ranking", "asymmetric")
    assert "10 found" in by_outputs.stdout


def test_an_export_adds_items_to_an_index_and_begins_one(world):
    added = run(world, "index", "add", "i", "new", "--vectors", "--model", "m-onnx", "--json")
    assert added.returncode == 0, added.stderr
    assert json.loads(added.stdout)["added"] == 4
    model = package.load(world / "m")
    images = package.data.ResizedDataset(package.data.open_source(world / "new"), 16)
    with package.open_index(world / "i", bits=12, model=world / "m") as index:  # of the same model
        assert index.get(["cat/36.png"])[0].code == model.encode(images)[0].tobytes()
        assert index.has_vectors
    refused = run(world, "index", "add", "i", "new", "--model", "m-onnx", "--by-label", "--reencode")
    assert refused.returncode == 2
    assert run(world, "search", "i", "new/cat/36.png", "--model", "m-onnx").returncode == 0


def test_what_needs_torch_says_so_in_one_line(world):
    for arguments in (("search", "m/index", "new/cat/36.png"), ("train", "photos"), ("encode", "m", "photos")):
        done = run(world, *arguments)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "this needs torch, which is not installed: pip install 'adsh[train]'" in done.stderr


def test_doctor_tests_what_needs_no_torch(world):
    done = run(world, "doctor")
    assert done.returncode == 0, done.stderr
    assert "torch        not installed" in done.stdout
    assert "puts them into an index and searches it" in done.stdout
    assert "learns codes" not in done.stdout
    assert "all is well, for what needs no torch" in done.stdout


def test_an_export_refuses_another_device_and_another_index(world):
    done = run(world, "search", "m/index", "new/cat/36.png", "--model", "m-onnx", "--device", "cuda")
    assert "--device cuda: an exported model runs on the CPU" in done.stderr
    with package.open_index(world / "other", bits=12, model="another") as index:
        index.add(["a"], np.zeros((1, 2), dtype=np.uint8))
    done = run(world, "search", "other", "new/cat/36.png", "--model", "m-onnx")
    assert (done.returncode, "is not the one whose codes the index holds" in done.stderr) == (2, True)
