"""`adsh export`, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


@pytest.fixture
def trained(adsh, blob_file):
    assert adsh("train", blob_file, "--bits", 8, "--outer", 1, "--network", "linear", "--out", "m").status == 0
    return "m"


def test_export_writes_a_folder_and_says_how_to_use_it(adsh, refused, trained):
    done = adsh("export", trained)
    assert done.status == 0, done.err
    assert done.err == ""
    assert "m-onnx" in done.out
    assert "inputs float32 (n, 8)" in done.out
    assert "outputs float32 (n, 8), codes uint8 (n, 1), features float32 (n, 8)" in done.out
    assert "outputs differ from the model's by at most" in done.out
    assert sorted(path.name for path in Path("m-onnx").iterdir()) == ["export.json", "familiarity.npz", "model.onnx"]
    summary = adsh("export", trained, "--out", "other", "--format", "onnx", "--json").json
    written = json.loads(Path("other/export.json").read_text())
    assert summary["fingerprint"] == written["fingerprint"]
    assert summary["largest_difference"] < 1e-4
    assert written["pictures"] is None
    assert "is not empty: give a new or empty folder" in refused("export", trained)


def test_an_export_is_served_without_saying_so_and_is_no_model_elsewhere(adsh, refused, trained):
    pytest.importorskip("fastapi")
    assert adsh("export", trained).status == 0
    assert adsh("index", "build", "index", "--model", trained).status == 0
    assert "--device cuda goes with --runtime torch" in refused("serve", "m-onnx", "index", "--device", "cuda")
    assert "is an export, which adsh serve takes" in refused("serve", "m-onnx", "index", "--runtime", "torch")
    assert "give the model itself here" in refused("encode", "m-onnx", "digits")


def test_export_refuses_what_it_cannot_do(refused, trained):
    assert "--format torchscript is unknown: choose onnx" in refused("export", trained, "--format", "torchscript")
    assert "is not a folder" in refused("export", "nowhere")
    Path("file").write_text("")
    assert "is a file" in refused("export", trained, "--out", "file")
    assert not Path("m-onnx").exists()
