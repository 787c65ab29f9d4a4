"""Items over HTTP: stored, read and taken out, whatever their keys look like; and their images."""

from __future__ import annotations

import json
import threading
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.serve.engine.limits import Limits

from .conftest import png

KEYS = [
    "a", "a/b/c.jpg", "with space", "é/ü 漢字 🎈.png", "a?b#c&d=e", "../up", "/leading", "trailing/", "a//b",
    "image", "a/image", "+plus", "semi;colon", "quo\"te'", "back\\slash", "line\nbreak",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_any_key_can_be_stored_read_replaced_and_taken_out(api, key):
    path = f"/v1/items/{quote(key, safe='')}"
    assert api.get(path).status_code == 404
    stored = api.put(path, json={"code": "a1b2c3", "metadata": {"class": "x", "deep": [1, {"a": None}]}})
    assert (stored.status_code, stored.json()) == (201, {"key": key, "code": "a1b2c3", "new": True})
    assert api.get(path).json() == {"key": key, "code": "a1b2c3", "metadata": {"class": "x", "deep": [1, {"a": None}]}}
    found = api.post("/v1/search", json={"code": "a1b2c3", "k": 1}).json()["matches"][0]
    assert (found["key"], found["distance"]) == (key, 0)
    again = api.put(path, json={"code": "A1B2C4"})
    assert (again.status_code, again.json()["new"], again.json()["code"]) == (200, False, "a1b2c4")
    assert api.get(path).json()["metadata"] is None
    assert api.delete(path).status_code == 204
    assert api.delete(path).status_code == 404


def test_metadata_comes_back_as_it_was_whatever_is_in_it(api):
    metadata = {
        "big": 10**40,
        "small": -(2**70),
        "text": "\u2028\0é🎈",
        "deep": [[[{"x": 1e-300}]]],
        "": None,
        "file": "a.jpg",
    }
    assert api.put("/v1/items/odd", json={"code": "a1b2c3", "metadata": metadata}).status_code == 201
    found = api.post("/v1/search", json={"code": "a1b2c3", "k": 1})
    for answer in (api.get("/v1/items/odd").text, json.dumps(json.loads(found.text)["matches"][0])):
        assert json.loads(answer)["metadata"] == metadata
    assert api.get("/v1/info").status_code == 200
    assert api.post("/v1/search", json={"code": "a1b2c3", "filter": {"big": {"ge": 10**39}}}).json()["matches"]


def test_slashes_of_a_key_may_be_sent_as_they_are(api):
    assert api.put("/v1/items/a/b/c.jpg", json={"code": "a1b2c3"}).status_code == 201
    assert api.get("/v1/items/a%2Fb%2Fc.jpg").json()["key"] == "a/b/c.jpg"
    assert api.delete("/v1/items/a/b%2Fc.jpg").status_code == 204


def test_an_image_is_stored_with_its_code_and_vector(api, artifacts):
    data = next(artifacts.photos.rglob("*.png")).read_bytes()
    code = api.post("/v1/encode", files={"image": data}).json()["code"]
    stored = api.put("/v1/items/new/one.png", files={"image": data}, data={"metadata": '{"class": "new"}'})
    assert (stored.status_code, stored.json()["code"]) == (201, code)
    found = api.post("/v1/search", files={"image": data}, data={"k": "3"}).json()
    assert found["reranked"]
    assert "new/one.png" in [match["key"] for match in found["matches"]]
    assert api.post("/v1/search", json={"key": "new/one.png", "rerank": True}).json()["reranked"]


def test_a_batch_is_stored_whole_or_not_at_all(api):
    items = [{"key": f"batch/{at}", "code": f"0000{at:02x}", "metadata": {"at": at}} for at in range(20)]
    assert api.post("/v1/items", json={"items": items}).json() == {"new": 20, "replaced": 0}
    assert api.post("/v1/items", json={"items": items[:5]}).json() == {"new": 0, "replaced": 5}
    for bad in ({"key": "z", "code": "00"}, {"key": "", "code": "000000"}, {"code": "000000"}, items[0]):
        given = [{"key": "fresh", "code": "000000"}, items[0], bad]
        assert api.post("/v1/items", json={"items": given}).status_code == 422
    assert api.get("/v1/items/fresh").status_code == 404


def test_limits_of_a_batch(start):
    api = start(limits=Limits(max_items=3))
    items = [{"key": str(at), "code": "000000"} for at in range(4)]
    answer = api.post("/v1/items", json={"items": items})
    assert (answer.status_code, "at most 3" in answer.json()["detail"]) == (422, True)
    assert api.post("/v1/items", json={"items": []}).status_code == 422
    assert api.post("/v1/items", json={"items": items[:3]}).status_code == 200


@pytest.mark.parametrize(
    ("key", "body", "said"),
    [
        ("k", {"code": "a1"}, "has 2 characters"),
        ("k", {}, "code is missing"),
        ("k", {"code": "a1b2c3", "metadata": 7}, "metadata=7"),
        ("k", {"code": "a1b2c3", "metadata": {"x": "y" * 70_000}}, "at most 65536"),
        ("k", {"code": "a1b2c3", "kind": 1}, "kind is not known here"),
        ("n\0l", {"code": "a1b2c3"}, "no NUL"),
        ("x" * 5000, {"code": "a1b2c3"}, "at most 4096"),
    ],
)
def test_an_item_that_cannot_be_stored(api, key, body, said):
    answer = api.put(f"/v1/items/{quote(key, safe='')}", json=body)
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["detail"]


def test_an_empty_key_is_no_key(api):
    assert api.put("/v1/items/", json={"code": "a1b2c3"}).status_code in (404, 422)


def test_what_another_process_writes_is_found(api):
    with adsh.open_index(api.index_folder) as other:
        other.add(["by another"], np.array([[1, 2, 3]], dtype=np.uint8))
    found = api.post("/v1/search", json={"code": "010203", "k": 1}).json()["matches"][0]
    assert (found["key"], found["distance"]) == ("by another", 0)
    assert api.get("/v1/items/by another").status_code == 200
    assert api.get("/v1/info").json()["items"] == 37


def test_readers_and_writers_at_once_see_whole_items(api):
    problems = []

    def write(who):
        for at in range(15):
            key, code = f"{who}/{at % 5}", f"{who:02x}00{at:02x}"
            answer = api.put(f"/v1/items/{key}", json={"code": code, "metadata": {"code": code}})
            if answer.status_code not in (200, 201):
                problems.append(answer.text)
            if at % 7 == 6:
                api.delete(f"/v1/items/{key}")

    def read():
        for at in range(30):
            answer = api.post("/v1/search", json={"code": f"0000{at:02x}", "k": 50})
            matches = answer.json()["matches"]
            problems.extend(m for m in matches if "code" in m["metadata"] and m["metadata"]["code"] != m["code"])
            if [m["distance"] for m in matches] != sorted(m["distance"] for m in matches):
                problems.append("out of order")

    threads = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    threads += [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert api.service.index.verify() == []


def test_images_are_shown_from_the_root(start, artifacts):
    api = start(images=artifacts.photos)
    answer = api.get(f"/v1/items/{quote('red/3 é.png', safe='')}/image")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert answer.content == (artifacts.photos / "red" / "3 é.png").read_bytes()
    assert api.get("/v1/items/red/3%20%C3%A9.png/image").status_code == 200
    assert api.get("/v1/items/nobody/image").status_code == 404
    assert api.get("/v1/info").json()["images"] is True


def test_no_images_without_a_root(api):
    answer = api.get("/v1/items/red/3 é.png/image")
    assert (answer.status_code, "--images" in answer.json()["detail"]) == (404, True)


def test_nothing_outside_the_root_is_shown(start, artifacts, tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
        Image.new("RGB", (4, 4)).save(folder / "a.png")
    (tmp_path / "root-beside").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "root-beside" / "b.png")
    (root / "link.png").symlink_to(outside / "a.png")
    (root / "folder").symlink_to(outside)
    (root / "loop.png").symlink_to(root / "loop.png")
    (root / "secret.txt").write_text("secret")
    (root / "secret.png").write_text("secret")
    (root / "dir.png").mkdir()
    (root / "inner.png").symlink_to(root / "a.png")
    api = start(images=root)
    outer = str(outside / "a.png")
    keys = {
        "a.png": 200, "inner.png": 200, outer: 404, "../outside/a.png": 404, "x/../../outside/a.png": 404,
        "link.png": 404, "folder/a.png": 404, "loop.png": 404, "secret.txt": 404, "secret.png": 404, "dir.png": 404,
        "..\\outside\\a.png": 404, "/etc/passwd": 404, f"{root}/../outside/a.png": 404,
        f"{root}-beside/b.png": 404,
    }  # fmt: skip
    for key, status in keys.items():
        path = f"/v1/items/{quote(key, safe='')}"
        assert api.put(path, json={"code": "000000"}).status_code == 201
        assert api.get(f"{path}/image").status_code == status, key
    for number, file in enumerate(
        (outer, "/etc/passwd", "../outside/a.png", "link.png", str(root / "link.png"), 7, [])
    ):
        path = f"/v1/items/noted{number}"
        api.put(path, json={"code": "000000", "metadata": {"file": file}})
        assert api.get(f"{path}/image").status_code == 404, file
    api.put("/v1/items/noted", json={"code": "000000", "metadata": {"file": str(root / "a.png")}})
    assert api.get("/v1/items/noted/image").status_code == 200


def test_a_key_that_ends_in_image_is_reported_by_its_encoded_slash(start, artifacts):
    api = start(images=artifacts.photos)
    api.put("/v1/items/x%2Fimage", json={"code": "000000"})
    assert api.get("/v1/items/x%2Fimage").json()["key"] == "x/image"
    assert api.get("/v1/items/x/image").status_code == 404


def test_info_has_what_the_page_needs(start):
    info = start(token="t").get("/v1/info", headers={"authorization": "Bearer t"}).json()
    assert (info["bits"], info["items"], info["vectors"], info["token"], info["images"]) == (24, 36, True, True, False)
    assert info["distinct_codes"] >= 3
    assert info["takes_images"] is True
    assert info["model"]["network"] == "tiny"
    assert info["fields"]["class"] == {"type": "text", "values": ["blue", "green", "red"], "all_values": True}
    assert info["fields"]["number"]["type"] == "number"
    assert set(info["fields"]) == {"class", "number"}
    assert {item["metadata"]["class"] for item in info["examples"]} == {"blue", "green", "red"}
    assert len(info["examples"]) == 12
    assert all(set(item["metadata"]) == {"class", "number"} for item in info["examples"])  # not where files lie
    assert info["evaluations"] == []
    assert info["limits"]["max_k"] == 1000
    json.dumps(info, allow_nan=False)


def test_an_image_may_be_stored_where_the_index_has_no_vectors(start, artifacts, tmp_path, encoder):
    from starlette.testclient import TestClient

    from adsh.serve.engine.service import Service
    from adsh.serve.http.app import create_app

    service = Service(encoder, adsh.open_index(tmp_path / "bare", bits=24), Limits(), model=artifacts.model)
    with TestClient(create_app(service), base_url="http://localhost") as api:
        assert api.put("/v1/items/a", files={"image": png()}).status_code == 201
        assert api.post("/v1/search", files={"image": png()}).json()["reranked"] is False
        refused = api.post("/v1/search", files={"image": png()}, data={"rerank": "true"})
        assert (refused.status_code, "no vectors" in refused.json()["detail"]) == (422, True)
        assert api.post("/v1/search", json={"key": "a", "rerank": True}).status_code == 422
