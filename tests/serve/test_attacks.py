"""Small requests that would cost much, and what a client or an administrator may do in the middle."""

from __future__ import annotations

import cProfile
import errno
import io
import json
import os
import shutil
import socket
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from adsh.index.filters import Filter
from adsh.serve.engine.service import count_values

from .conftest import png

CODE = "000000"


def scans(times: int) -> bytes:
    """A progressive JPEG whose second scan comes so many times."""
    file = io.BytesIO()
    Image.effect_noise((64, 64), 90).convert("RGB").save(file, "JPEG", progressive=True)
    data = file.getvalue()
    first = data.index(b"\xff\xda", data.index(b"\xff\xda") + 2)
    second = data.index(b"\xff\xda", first + 2)
    one = data[first:second]
    return data[:second] + one * times + data[second:]


def test_a_jpeg_of_thousands_of_scans_is_refused_before_it_is_decoded(api):
    answer = api.post("/v1/encode", files={"image": scans(200)})
    assert answer.status_code == 422
    assert "more than 100 scans" in answer.json()["detail"]
    assert api.post("/v1/encode", files={"image": scans(0)}).status_code == 200


def test_an_image_that_is_a_line_is_refused_by_its_header(api):
    file = io.BytesIO()
    Image.new("1", (1, 2_000_000)).save(file, "PNG")
    started = time.perf_counter()
    answer = api.post("/v1/encode", files={"image": file.getvalue()})
    assert answer.status_code == 422
    assert "1 x 2,000,000 pixels, too long to be cropped to a square: crop it" in answer.json()["detail"]
    assert time.perf_counter() - started < 5


def test_a_filter_of_many_values_is_refused(api):
    many = {"code": CODE, "filter": {"class": {"in": list(range(5000))}}}
    answer = api.post("/v1/search", json=many)
    assert answer.status_code == 422
    assert "filter holds 5,003 values: give at most 1,000" in answer.json()["detail"]
    few = {"code": CODE, "filter": {"class": {"in": ["red", *range(500)]}}}
    assert len(api.post("/v1/search", json=few).json()["matches"]) == 10


def test_values_are_counted_at_any_depth():
    assert count_values({"a": [1, 2, {"b": 3}], "c": None}) == 7


@pytest.mark.parametrize(
    "found",
    [1, 1.0, True, "1", None, [1, "x"], [[1]], {"a": 1}, [], 7, [True, 2], [2, 1.0], [[True], None]],
)
@pytest.mark.parametrize("choices", [[1], [True], ["1", "x"], [None], [[1]], [{"a": 1}], [], [1, "x", [1, "x"]]])
def test_one_of_many_is_found_as_one_by_one(found, choices):
    text = json.dumps({"f": found})
    one_by_one = any(Filter({"f": {"eq": one}}).accepts(text) for one in choices if not isinstance(one, dict))
    one_by_one = one_by_one or any(isinstance(one, dict) and one == found for one in choices)
    assert Filter({"f": {"in": choices}}).accepts(text) == one_by_one
    assert Filter({"f": {"not_in": choices}}).accepts(text) != one_by_one


@pytest.mark.parametrize("condition", [{"in": ["x", -1]}, {"not_in": ["x", -1]}, "x", {"ne": "x"}])
def test_a_list_of_thousands_is_compared_at_once(condition):
    """Others' filters took 15 ms more after each change, where twenty items had lists of thousands of labels."""
    profile = cProfile.Profile()
    profile.runcall(Filter({"f": condition}).holds, {"f": ["xyz", *range(9000)]})
    assert sum(entry.callcount for entry in profile.getstats()) < 50


def test_json_of_a_thousand_brackets_in_a_form_is_refused(api):
    deep = '{"a":' + "[" * 900 + "]" * 900 + "}"
    answer = api.post("/v1/search", files={"image": png()}, data={"filter": deep})
    assert answer.status_code == 422
    assert "more than 64 levels of brackets" in answer.json()["detail"]


@pytest.mark.parametrize("charset", ["undefined", "punycode", "no-such-charset"])
def test_a_charset_that_cannot_be_read_is_the_senders_mistake(api, charset):
    body = b'--x\r\nContent-Disposition: form-data; name="k"\r\n\r\n\xff5\r\n'
    body += b'--x\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n' + png() + b"\r\n--x--\r\n"
    kind = f"multipart/form-data; boundary=x; charset={charset}"
    answer = api.post("/v1/search", content=body, headers={"content-type": kind})
    assert answer.status_code == 422


@pytest.mark.parametrize("path", ["/v1/encode", "/v1/search"])
def test_a_client_that_goes_away_in_the_middle_is_no_failure(live, path):
    kind = "multipart/form-data; boundary=x" if path == "/v1/encode" else "application/json"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\n"
    head += f"Content-Type: {kind}\r\nContent-Length: 5000\r\nX-Request-ID: gone{path.replace('/', '.')}\r\n\r\n--x\r\n"
    with socket.create_connection(("127.0.0.1", live.port)) as connection:
        connection.sendall(head.encode())
        time.sleep(0.2)
    until = time.monotonic() + 20
    while not (mine := [line for line in live.logged() if line.get("id") == f"gone{path.replace('/', '.')}"]):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert [(line["level"], line["status"]) for line in mine] == [("info", 499)]


def test_an_index_that_was_moved_away_takes_no_writes(api):
    assert api.get("/readyz").status_code == 200
    moved = api.index_folder.with_name("moved")
    api.index_folder.rename(moved)
    shutil.copytree(moved, api.index_folder)
    answer = api.put("/v1/items/new", json={"code": CODE})
    assert answer.status_code == 503
    assert "was moved, replaced or removed" in answer.json()["detail"]
    assert api.get("/readyz").status_code == 503
    assert api.post("/v1/search", json={"code": CODE}).status_code == 200  # what was opened can still be searched


def test_a_read_only_index_stays_ready_while_others_write_it(start, monkeypatch):
    really_open = os.open

    def refuse_writing(path, flags, *more, **options):
        if Path(path).name == "commits" and flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied")
        return really_open(path, flags, *more, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse_writing)
        api = start()
    assert api.service.index.read_only
    log = api.index_folder / "index.db-wal"
    log.touch()  # as a writer elsewhere does, and deletes it at its end
    assert api.get("/readyz").status_code == 200
    log.unlink()
    assert api.get("/readyz").status_code == 200


def test_another_method_is_reported_apart_from_nothing_there(api):
    for path in ("/v1/search", "/v1/encode", "/v1/search/batch", "/v1/count"):
        answer = api.get(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    for path in ("/v1/info", "/metrics", "/docs", "/openapi.json"):
        answer = api.post(path)
        assert (answer.status_code, "GET" in answer.headers["allow"]) == (405, True), path
    for path in ("/", "/app.js"):
        assert (api.post(path).status_code, api.post(path).headers["allow"]) == (405, "GET, HEAD")
    for path in ("/v1/nothing", "/nothing", "/app.js/more"):
        assert {api.request(method, path).status_code for method in ("GET", "POST", "PUT", "DELETE")} == {404}, path
    for path in ("/healthz", "/readyz"):
        assert api.head(path).status_code == 200


def test_a_key_that_is_no_text_is_refused(api):
    for key in ("%ff", "%fe", "red/%C3"):
        answer = api.put(f"/v1/items/{key}", json={"code": CODE})
        assert answer.status_code == 422
        assert "is not UTF-8" in answer.json()["detail"]
    assert api.put("/v1/items/%C3%A9", json={"code": CODE}).json()["key"] == "é"


def test_a_label_that_is_a_name_of_a_file_in_no_unicode_is_guessed(api):
    index = api.service.index
    index.add(["odd"], np.full((1, 3), 255, np.uint8), [{"class": "a\udcff"}])
    answer = api.post("/v1/search", json={"code": "ffffff", "k": 1})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["guess"]["label"], answer.json()["matches"][0]["key"]) == ("a\udcff", "odd")


def test_labels_without_end_delay_no_search_and_take_little_memory(api):
    """Each search had every item vote for 9,000 labels: 300 such items took ten seconds and 600 MiB."""
    codes = np.random.default_rng(0).integers(0, 256, size=(300, 3), dtype=np.uint8)
    metadata = [{"class": list(range(at, at + 9000))} for at in range(300)]
    api.service.index.add([f"labels {at}" for at in range(300)], codes, metadata)
    tracemalloc.start()
    started = time.process_time()
    assert api.post("/v1/search", json={"code": CODE, "k": 1}).json()["guess"]["items"] > 10
    taken = time.process_time() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300 << 20
    assert taken < 5


def test_values_of_a_part_are_not_called_all(api, monkeypatch):
    monkeypatch.setattr("adsh.serve.http.info._SAMPLE", 10)
    assert api.get("/v1/info").json()["fields"]["class"]["all_values"] is False
    assert np.ndim(api.get("/v1/info").json()["fields"]["class"]["values"]) == 1


def test_images_are_shown_though_their_folder_was_named_by_a_link(start, artifacts, tmp_path):
    (tmp_path / "link").symlink_to(artifacts.photos, target_is_directory=True)
    api = start(images=tmp_path / "link")
    file = str(tmp_path / "link" / "red" / "1 é.png")
    assert api.put("/v1/items/copy.png", json={"code": CODE, "metadata": {"file": file}}).status_code == 201
    assert api.get("/v1/items/copy.png/image").headers["content-type"] == "image/png"
    outside = {"code": CODE, "metadata": {"file": "/etc/hostname.png"}}
    assert api.put("/v1/items/other", json=outside).status_code == 201
    assert api.get("/v1/items/other/image").status_code == 404
