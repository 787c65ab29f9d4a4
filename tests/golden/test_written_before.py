"""Folders that earlier code wrote open with this code, and give what they gave then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adsh
from adsh.config import RETIRED

WRITTEN = Path(__file__).parent / "written"
MODELS = ("model", "several-labels", "itq", "sdh", "dpsh")
NETWORKS = ("model", "several-labels", "dpsh")


@pytest.fixture(scope="module")
def expected():
    with np.load(WRITTEN / "expected.npz") as arrays:
        return dict(arrays)


@pytest.fixture
def index(tmp_path):
    """A copy: opening an index may tidy it."""
    shutil.copytree(WRITTEN / "index", tmp_path / "index")
    with adsh.open_index(tmp_path / "index") as opened:
        yield opened


def as_lists(matches):
    return [[[match.key, match.distance, match.metadata] for match in found] for found in matches]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_the_codes_it_learned(name, expected):
    assert np.array_equal(adsh.load(WRITTEN / name).database_codes_, expected[f"{name}.database"])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_codes_items_as_it_did(name, expected):
    model = adsh.load(WRITTEN / name)
    assert np.array_equal(model.encode(expected[f"{name}.items"]), expected[f"{name}.new"])


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_gives_the_outputs_it_gave(name, expected):
    model = adsh.load(WRITTEN / name)
    np.testing.assert_allclose(model.outputs(expected[f"{name}.items"]), expected[f"{name}.outputs"], atol=1e-5)


@pytest.mark.parametrize(
    ("name", "labels"), [("model", ["oak", "fir", "ash"]), ("several-labels", np.eye(5, dtype=int))]
)
def test_a_model_codes_labels_as_it_did(name, labels, expected):
    assert np.array_equal(adsh.load(WRITTEN / name).code_for(labels), expected[f"{name}.for_labels"])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_saved_again_is_the_same_but_for_the_version(name, tmp_path):
    adsh.load(WRITTEN / name).save(tmp_path / "again")
    for path in sorted((WRITTEN / name).iterdir()):
        again = tmp_path / "again" / path.name
        if path.suffix == ".json":
            before, now = (json.loads(file.read_text(encoding="utf-8")) for file in (path, again))
            for retired in RETIRED:
                before.get("recipe", {}).pop(retired, None)
            assert {key: now.get(key) for key in before} | {"adsh_version": ""} == before | {"adsh_version": ""}
        elif path.suffix != ".md":
            assert again.read_bytes() == path.read_bytes(), path.name


def test_an_index_holds_what_was_put_in_and_not_taken_out(index):
    expected = json.loads((WRITTEN / "expected.json").read_text(encoding="utf-8"))["index"]
    assert index.keys() == expected["keys"]
    assert index.bits == 20
    assert index.noted("where") == "beside the sea"
    assert index.verify() == []


def test_an_index_finds_what_it_found(index):
    expected = json.loads((WRITTEN / "expected.json").read_text(encoding="utf-8"))["index"]
    queries, vectors = np.array(expected["asked"], np.uint8), np.array(expected["vectors"], np.float32)
    assert as_lists(index.search(queries, 6)) == expected["nearest"]
    assert as_lists(index.search(queries, 4, where={"class": "dog", "year": {"ge": 2000}})) == expected["where"]
    assert as_lists(index.within(queries, 5)) == expected["within"]
    assert as_lists(index.search(queries, 6, vectors=vectors, rerank=True)) == expected["reranked"]


def test_an_index_refuses_the_codes_of_another_model(tmp_path):
    shutil.copytree(WRITTEN / "index", tmp_path / "index")
    with adsh.open_index(tmp_path / "index", model="some model") as index:
        assert len(index) > 0
    with pytest.raises(adsh.AdshError):
        adsh.open_index(tmp_path / "index", model="another model")


def test_a_report_is_read_back_and_compared(tmp_path):
    (evaluation,) = adsh.evaluate.read_report(WRITTEN / "report")
    assert evaluation.bits == 12
    for name in ("one", "other"):
        shutil.copytree(WRITTEN / "report", tmp_path / name)
    adsh.evaluate.compare_reports([tmp_path / "one", tmp_path / "other"], tmp_path / "both")
    assert len(adsh.evaluate.read_report(tmp_path / "both")) == 2


def test_an_export_gives_the_codes_of_its_model(expected):
    onnxruntime = pytest.importorskip("onnxruntime")
    about = json.loads((WRITTEN / "onnx/export.json").read_text(encoding="utf-8"))
    session = onnxruntime.InferenceSession(WRITTEN / "onnx/model.onnx", providers=["CPUExecutionProvider"])
    (codes,) = session.run(["codes"], {about["input"]["name"]: expected["model.items"]})
    assert np.array_equal(codes, expected["model.new"])


def test_an_interrupted_run_is_resumed_to_the_codes_of_one_that_was_not(tmp_path, expected):
    np.savez(tmp_path / "blobs.npz", features=expected["run.features"], labels=expected["run.labels"])
    shutil.copytree(WRITTEN / "run", tmp_path / "run")
    for name in ("run.toml", "log.jsonl"):
        path = tmp_path / "run" / name
        path.write_text(path.read_text(encoding="utf-8").replace("HERE", str(tmp_path)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "adsh", "train", "--resume", "--out", "run", "--json"],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outer"] == 6
    events = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [event["done"] for event in events if event["event"] in ("start", "resume")] == [0, 3]
    model = adsh.load(tmp_path / "run")
    assert np.array_equal(model.database_codes_, expected["run.database"])
    assert np.array_equal(model.encode(expected["run.features"]), expected["run.new"])
