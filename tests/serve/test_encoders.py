"""The same images through either runtime: the same codes, and the same answers."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.client import Client
from adsh.encoders.base import open_encoder
from adsh.encoders.onnx_package import facts_of
from adsh.errors import FolderError, InputError
from adsh.evaluate.evaluation import evaluate_model
from adsh.evaluate.report import write_report

from .conftest import Process


@pytest.fixture(scope="session")
def export_folder(artifacts, tmp_path_factory):
    """The export of an evaluated model, with nothing of the model next to it."""
    if find_spec("onnxruntime") is None or find_spec("onnxscript") is None:
        pytest.skip("onnxruntime and onnxscript are missing: pip install 'adsh[onnx]'")
    from adsh.export.onnx import export

    folder = tmp_path_factory.mktemp("exported")
    shutil.copytree(artifacts.model, folder / "model")
    photos = adsh.data.ResizedDataset(adsh.data.open_source(str(artifacts.photos)), 32)
    evaluation = evaluate_model(
        adsh.load(artifacts.model), photos, photos.labels, photos, photos.labels, about={"data": str(artifacts.photos)}
    )
    write_report(evaluation, folder / "model" / "report")
    export(folder / "model", folder / "onnx")
    shutil.rmtree(folder / "model")
    return folder / "onnx"


@pytest.fixture(scope="session")
def exported(export_folder):
    return open_encoder(export_folder, "onnx")


@pytest.fixture
def far_index(artifacts, tmp_path):
    """The index somewhere else, which knows of no model's folder."""
    shutil.copytree(artifacts.index, tmp_path / "elsewhere" / "index")
    return tmp_path / "elsewhere" / "index"


def test_an_export_alone_says_what_it_is_and_how_good(export_folder, exported, artifacts, far_index):
    from adsh.serve.engine.limits import Limits
    from adsh.serve.engine.service import Service
    from adsh.serve.http import info

    with adsh.open_index(far_index) as index:
        assert index.noted("model") is None
        service = Service(exported, index, Limits(), model=export_folder, runtime="onnx")
        model, (evaluation,) = info._model_facts(service), info._evaluations(service)
    assert (model["network"], model["bits"], model["points"]) == ("tiny", 24, 36)
    assert (evaluation["bits"], evaluation["queries"], evaluation["database"]) == (24, 36, 36)
    assert 0 < evaluation["columns"]["learned"]["map_expected"] <= 1
    assert sorted(path.name for path in export_folder.iterdir()) == [
        "export.json", "familiarity.npz", "model.onnx", "report.json",
    ]  # fmt: skip
    (kept,) = json.loads((export_folder / "report.json").read_text())["evaluations"]
    assert (kept["cases"], kept["history"]) == ({}, [])
    for name in ("export.json", "report.json"):
        assert str(artifacts.photos.parent) not in (export_folder / name).read_text()


def test_an_older_export_says_what_it_can(export_folder, tmp_path):
    about = json.loads((export_folder / "export.json").read_text())
    del about["model"]
    (tmp_path / "export.json").write_text(json.dumps(about))
    assert facts_of(tmp_path) == {"method": "adsh", "bits": 24, "network": "tiny"}
    for broken in ("[]", "{", '{"model": 7}', "{}"):
        (tmp_path / "export.json").write_text(broken)
        with pytest.raises(FolderError, match="export or copy the model again"):
            facts_of(tmp_path)


def test_an_export_is_served_where_torch_cannot_be_imported(export_folder, artifacts, far_index, tmp_path):
    program = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torchvision", "timm"):
            raise AssertionError(f"{name} was imported")

sys.meta_path.insert(0, NoTorch())
from adsh.cli import main
main()
"""
    server = Process(
        export_folder, far_index, "--runtime", "onnx", log=tmp_path / "log.jsonl", program=("-c", program)
    )  # fmt: skip
    path = artifacts.photos / "red" / "3 é.png"
    with Client(server.url) as client:
        code = client.encode(path)["code"]
        found = client.search(path, k=3)
        facts = client.info()
    assert server.end() == 0
    assert found["code"] == code
    assert [match["metadata"]["class"] for match in found["matches"]] == ["red"] * 3
    assert (facts["runtime"], facts["model"]["network"], len(facts["evaluations"])) == ("onnx", "tiny", 1)
    assert not [line for line in server.logged() if line["level"] != "info"]


def test_both_runtimes_give_the_same(artifacts, encoder, exported):
    images = [Image.open(path) for path in sorted(artifacts.photos.rglob("*.png"))[::5]]
    images += [Image.new("L", (300, 20), 90), Image.new("RGBA", (7, 9), (1, 2, 3, 60))]
    first, second = encoder.encode(images), exported.encode(images)
    for image in images:
        image.close()
    assert (encoder.bits, encoder.fingerprint, encoder.vector_size, encoder.size) == (
        exported.bits, exported.fingerprint, exported.vector_size, exported.size,
    )  # fmt: skip
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_allclose(first.outputs, second.outputs, atol=1e-4)
    np.testing.assert_allclose(first.vectors, second.vectors, atol=1e-3)


def test_an_export_describes_the_model_that_its_index_notes(artifacts, exported, tmp_path):
    from adsh.serve.engine.limits import Limits
    from adsh.serve.engine.service import Service
    from adsh.serve.http import info

    with adsh.open_index(tmp_path / "index", bits=24, model=artifacts.model) as index:
        service = Service(exported, index, Limits(), model=tmp_path, runtime="onnx")
        assert info._model_facts(service) == {"bits": 24}
        index.note("model", str(artifacts.model))
        assert info._model_facts(service)["network"] == "tiny"


def test_an_export_is_served_with_the_index_of_its_model(start, artifacts, exported):
    data = next(artifacts.photos.rglob("*.png")).read_bytes()
    answers = [
        start(with_encoder=one).post("/v1/search", files={"image": data}, data={"k": "4"}).json()
        for one in (None, exported)
    ]
    assert answers[0] == answers[1]


def test_the_codes_are_those_of_the_model(artifacts, encoder):
    photos = adsh.data.ResizedDataset(adsh.data.open_source(str(artifacts.photos)), 32)
    images = [Image.open(artifacts.photos / key) for key in photos.keys]
    encoding = encoder.encode(images)
    for image in images:
        image.close()
    codes, vectors = adsh.load(artifacts.model).codes_and_features(photos)
    np.testing.assert_array_equal(encoding.codes, codes)
    np.testing.assert_allclose(encoding.vectors, vectors, atol=1e-5)


def test_a_runtime_that_there_is_not(artifacts):
    with pytest.raises(InputError, match="choose one of torch, onnx"):
        open_encoder(artifacts.model, "tvm")
    with pytest.raises(InputError, match="goes with --runtime torch"):
        open_encoder(artifacts.model, "onnx", "cuda")
