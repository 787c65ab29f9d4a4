"""`adsh serve` where it cannot serve: one line each; the rest is in tests/serve."""

from __future__ import annotations

import socket
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.skipif(find_spec("fastapi") is None, reason="fastapi is missing: pip install 'adsh[serve]'")


def test_what_cannot_be_served_is_reported_in_one_line(adsh, refused, blob_file, tmp_path):
    flags = ("--bits", 12, "--network", "linear", "--outer", 2, "--no-report")
    for seed in (0, 1):
        assert adsh("train", blob_file, *flags, "--seed", seed, "--out", f"model{seed}").status == 0
    assert adsh("index", "build", "index", "--model", "model0").status == 0
    assert "codes of two models cannot be compared" in refused("serve", "model1", "index")
    assert "zz does not exist: give the folder of a trained or exported model" in refused("serve", "zz")
    assert "there is no index at" in refused("serve", "model0", "none")
    assert "there is no index at model0/index" in refused("serve", "model0")  # where train puts it
    assert "give --token" in refused("serve", "model0", "index", "--host", "0.0.0.0")
    assert "header cannot carry" in refused("serve", "model0", "index", "--token", "a b")
    assert "is not a folder" in refused("serve", "model0", "index", "--images", "none")
    assert "choose one of torch, onnx" in refused("serve", "model0", "index", "--runtime", "tvm")
    assert "give an origin" in refused("serve", "model0", "index", "--cors", "example.org")
    for more in ((), ("--no-token",), ("--cors", "https://a.example")):
        said = refused("serve", "model0", "index", "--cors", "*", *more)
        assert "lets any web page read and delete" in said
    assert "stop-seconds" in refused("serve", "model0", "index", "--stop-seconds", "nan")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "choose another --port" in refused("serve", "model0", "index", "--port", port)


def test_a_model_of_features_is_served_by_code_and_key(adsh, blob_file, tmp_path):
    from starlette.testclient import TestClient

    from adsh.serve.http.app import create_app
    from adsh.serve.run import Settings, open_service

    assert (
        adsh("train", blob_file, "--bits", 12, "--network", "linear", "--outer", 2, "--report", "--out", "m").status
        == 0
    )
    assert adsh("index", "build", "index", "--model", "m").status == 0
    service = open_service(Settings(tmp_path / "m", str(tmp_path / "index")))
    with TestClient(create_app(service), base_url="http://localhost") as api:
        info = api.get("/v1/info").json()
        assert info["takes_images"] is False
        assert {"learned", "network"} <= set(info["evaluations"][0]["columns"])
        assert 0 <= info["evaluations"][0]["columns"]["learned"]["map_expected"] <= 1
        assert len(api.post("/v1/search", json={"code": "a1b0", "k": 4}).json()["matches"]) == 4
        wrong = api.post("/v1/search", json={"code": "a1b1"})
        assert (wrong.status_code, "a 1 after its 12 bits" in wrong.json()["detail"]) == (422, True)
        ppm = b"P6 1 1 255\n\0\0\0"
        assert "features an item, not images" in api.post("/v1/encode", files={"image": _png()}).json()["detail"]
        assert api.post("/v1/encode", files={"image": ppm}).status_code == 422


def _png() -> bytes:
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "PNG")
    return file.getvalue()
