"""The same pictures through either runtime: the same codes, and the same answers."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.coder import open_coder
from adsh.errors import InputError


@pytest.fixture(scope="session")
def exported(made, tmp_path_factory):
    if find_spec("onnxruntime") is None or find_spec("onnxscript") is None:
        pytest.skip("onnxruntime and onnxscript are missing: pip install 'adsh[onnx]'")
    from adsh.export_run import export

    folder = tmp_path_factory.mktemp("exported") / "onnx"
    export(made.model, folder)
    return open_coder(folder, "onnx")


def test_both_runtimes_give_the_same(made, coder, exported):
    images = [Image.open(path) for path in sorted(made.photos.rglob("*.png"))[::5]]
    images += [Image.new("L", (300, 20), 90), Image.new("RGBA", (7, 9), (1, 2, 3, 60))]
    first, second = coder.code(images), exported.code(images)
    for image in images:
        image.close()
    assert (coder.bits, coder.fingerprint, coder.vector_size, coder.size) == (
        exported.bits, exported.fingerprint, exported.vector_size, exported.size,
    )  # fmt: skip
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_allclose(first.outputs, second.outputs, atol=1e-4)
    np.testing.assert_allclose(first.vectors, second.vectors, atol=1e-3)


def test_an_export_tells_of_the_model_that_its_index_notes(made, exported, tmp_path):
    from adsh.serve import info
    from adsh.serve.limits import Limits
    from adsh.serve.service import Service

    with adsh.open_index(tmp_path / "index", bits=24, model=made.model) as index:
        service = Service(exported, index, Limits(), model=tmp_path, runtime="onnx")
        assert info._model(service) == {"bits": 24}
        index.note("model", str(made.model))
        assert info._model(service)["network"] == "tiny"


def test_an_export_is_served_with_the_index_of_its_model(start, made, exported):
    data = next(made.photos.rglob("*.png")).read_bytes()
    answers = [
        start(with_coder=one).post("/v1/search", files={"image": data}, data={"k": "4"}).json()
        for one in (None, exported)
    ]
    assert answers[0] == answers[1]


def test_the_codes_are_those_of_the_model(made, coder):
    photos = adsh.data.Sized(adsh.data.open_source(str(made.photos)), 32)
    images = [Image.open(made.photos / key) for key in photos.keys]
    coded = coder.code(images)
    for image in images:
        image.close()
    codes, vectors = adsh.load(made.model).codes_and_features(photos)
    np.testing.assert_array_equal(coded.codes, codes)
    np.testing.assert_allclose(coded.vectors, vectors, atol=1e-5)


def test_a_runtime_that_there_is_not(made):
    with pytest.raises(InputError, match="choose one of torch, onnx"):
        open_coder(made.model, "tvm")
    with pytest.raises(InputError, match="goes with --runtime torch"):
        open_coder(made.model, "onnx", "cuda")
