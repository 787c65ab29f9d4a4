"""Token, limits, headers, logs and metrics: what a stranger may do, and what is reported about it."""

from __future__ import annotations

import io
import json
import re
import struct
import sys
import zlib

import pytest
from PIL import Image

from adsh.errors import FolderError, InputError
from adsh.serve.engine.limits import Limits
from adsh.serve.http.api_page import page
from adsh.serve.middleware.security import check_token, is_loopback

from .. import forked
from .conftest import png

EVERYTHING = [
    ("POST", "/v1/search"), ("POST", "/v1/encode"), ("GET", "/v1/items/a"), ("PUT", "/v1/items/a"),
    ("DELETE", "/v1/items/red/3 é.png"), ("POST", "/v1/items"), ("GET", "/v1/items/a/image"), ("GET", "/v1/info"),
    ("GET", "/metrics"), ("GET", "/v1/nothing"), ("GET", "/v1"),
]  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        *(None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic s3cret", "s3cret", "Bearer s3cre", "Bearer s3cret2"),
        *("Bearer S3cret", "bearer\ts3cret"),
    ],
)
def test_nothing_without_the_token(start, given):
    api = start(token="s3cret")
    headers = {} if given is None else {"authorization": given}
    for method, path in EVERYTHING:
        answer = api.request(method, path, headers=headers)
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "token" in answer.json()["detail"]


def test_everything_with_the_token(start):
    api = start(token="s3cret")
    for given in ("Bearer s3cret", "bearer s3cret"):
        assert api.get("/v1/info", headers={"authorization": given}).status_code == 200
        search = api.post("/v1/search", json={"code": "a1b2c3"}, headers={"authorization": given})
        assert search.status_code == 200
    for path in ("/healthz", "/readyz", "/", "/openapi.json", "/docs"):
        assert api.get(path).status_code == 200, path


def test_a_token_of_odd_bytes_is_wrong_and_no_crash(start):
    api = start(token="s3cret")
    assert api.get("/v1/info", headers={"authorization": "Bearer é".encode("latin-1")}).status_code == 401


def test_the_network_is_let_in_with_a_token_only():
    check_token(None, "127.0.0.1", without=False)
    check_token("t", "0.0.0.0", without=False)
    check_token(None, "0.0.0.0", without=True)
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(InputError, match="give --token"):
            check_token(None, host, without=False)
    for token in ("a b", "é", "", " ", "a\n"):
        with pytest.raises(InputError, match="header cannot carry"):
            check_token(token, "127.0.0.1", without=False)
    assert [is_loopback(host) for host in ("localhost", "127.9.9.9", "::1", "[::1]", "10.0.0.1")] == [True] * 4 + [
        False
    ]


def test_names_of_other_machines_are_not_answered_to(start):
    api = start()
    for host in ("evil.example", "evil.example:8000", "localhost.evil.example", "10.0.0.1"):
        assert api.get("/v1/info", headers={"host": host}).status_code == 421, host
    for host in (
        "localhost",
        "localhost:8000",
        "127.0.0.1:8000",
        "[::1]:8000",
        "LOCALHOST",
        "localhost.",
        "Localhost.:80",
    ):
        assert api.get("/v1/info", headers={"host": host}).status_code == 200, host
    assert start(token="t").get("/healthz", headers={"host": "evil.example"}).status_code == 200


def test_what_a_proxy_passes_on_needs_a_token_or_a_word(start):
    """A proxy sends requests under a name of this machine, for anybody."""
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        given = {header: "for=203.0.113.7"}
        for path in ("/v1/info", "/", "/metrics"):
            answer = start().get(path, headers=given)
            assert answer.status_code == 403, (header, path)
            assert "came through a proxy" in answer.json()["detail"]
        assert start(only_local=False).get("/v1/info", headers=given).status_code == 200  # --no-token
        assert start(token="t").get("/v1/info", headers={**given, "authorization": "Bearer t"}).status_code == 200


@pytest.mark.parametrize("seconds", ["nan", "inf"])
def test_seconds_that_are_no_number_are_refused_in_one_line(artifacts, seconds):
    command = ["serve", str(artifacts.model), str(artifacts.index), "--port", "0", f"--max-seconds={seconds}"]
    done = forked.run([sys.executable, "-m", "adsh", *command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "max-seconds" in done.stderr


def test_a_body_over_the_limit_is_refused_by_its_head_and_by_its_bytes(start):
    api = start(limits=Limits(max_body=10_000))
    big = b"x" * 10_001

    def pieces():
        for at in range(0, len(big), 1000):
            yield big[at : at + 1000]

    for content in (big, pieces()):
        answer = api.post("/v1/search", content=content, headers={"content-type": "application/json"})
        assert (answer.status_code, "more than 10,000 bytes" in answer.json()["detail"]) == (413, True)
    for path, method in (("/v1/search", "POST"), ("/v1/encode", "POST"), ("/v1/items/a", "PUT")):
        answer = api.request(method, path, files={"image": big})
        assert answer.status_code == 413, path
    assert api.post("/v1/items", content=pieces(), headers={"content-type": "application/json"}).status_code == 413


def bomb(width, height, kind="PNG") -> bytes:
    """A PNG whose header tells of many pixels, in a few bytes."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 100_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_an_image_of_too_many_pixels_is_never_decoded(start, monkeypatch):
    def load(*_):
        raise AssertionError("it was decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
    api = start(limits=Limits(max_pixels=1_000_000))
    for size in ((1001, 1000), (30_000, 30_000), (2**31 - 1, 2**31 - 1), (2_000_000, 1)):
        answer = api.post("/v1/search", files={"image": bomb(*size)})
        assert answer.status_code == 422
        assert any(text in answer.json()["detail"] for text in ("make it smaller", "broken image"))


def test_a_long_thin_image_does_not_grow_beyond_the_limit(start):
    api = start(limits=Limits(max_pixels=1_000_000))
    answer = api.post("/v1/encode", files={"image": png(size=(2000, 1))})
    assert (answer.status_code, "too long" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize("kind", ["ICO", "TIFF", "PPM", "TGA", "EPS"])
def test_formats_that_are_not_for_strangers_are_refused(api, kind):
    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, kind)
    answer = api.post("/v1/encode", files={"image": file.getvalue()})
    assert (answer.status_code, "no image of a known format" in answer.json()["detail"]) == (422, True)


def test_every_answer_has_its_headers(api):
    for path in ("/", "/healthz", "/v1/info", "/nothing", "/v1/items/none"):
        headers = api.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_other_origins_are_let_in_by_name(start):
    origin = {"origin": "https://a.example"}
    ask = {**origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    api = start(cors=["https://a.example"], token="t")
    assert api.options("/v1/search", headers=ask).headers["access-control-allow-origin"] == "https://a.example"
    assert api.get("/v1/info", headers=origin).headers["access-control-allow-origin"] == "https://a.example"
    other = api.get("/v1/info", headers={"origin": "https://b.example", "authorization": "Bearer t"})
    assert "access-control-allow-origin" not in other.headers
    assert "access-control-allow-origin" not in start().options("/v1/search", headers=ask).headers


def test_a_failure_shows_its_id_and_nothing_else(start, monkeypatch):
    lines = []
    api = start(write=lines.append)
    for error in (RuntimeError("a secret"), FolderError("/home/someone is damaged")):

        def fail(*_, error=error, **__):
            raise error

        monkeypatch.setattr(api.service.index, "search", fail)
        monkeypatch.setattr(api.service.index, "get", fail)
        for answer in (api.post("/v1/search", json={"code": "a1b2c3"}), api.get("/v1/items/a")):
            assert answer.status_code == 500
            assert set(answer.json()) == {"detail", "request_id"}
            for text in ("secret", "someone", "Traceback", "Error"):
                assert text not in answer.text
            failed = [line for line in lines if line["level"] == "error" and line["id"] == answer.json()["request_id"]]
            assert str(error) in failed[0]["trace"]


def test_requests_are_logged_under_their_ids(start):
    lines = []
    api = start(write=lines.append)
    answer = api.get("/v1/items/none?a=1", headers={"x-request-id": "my-id.7"})
    assert answer.headers["x-request-id"] == "my-id.7"
    assert {name: lines[-1][name] for name in ("id", "method", "path", "status")} == {
        "id": "my-id.7", "method": "GET", "path": "/v1/items/none", "status": 404,
    }  # fmt: skip
    assert lines[-1]["ms"] > 0
    for bad in ("a b", "x" * 65, "<script>", 'a"b', ""):
        given = api.get("/healthz", headers={"x-request-id": bad}).headers["x-request-id"]
        assert given != bad
        assert len(given) == 16
    json.dumps(lines)


def test_metrics_count_by_route(api):
    for key in ("a", "b", "c"):
        api.get(f"/v1/items/{key}")
    api.post("/v1/search", json={"code": "a1b2c3"})
    api.get("/wp-login.php")
    api.request("BREW", "/v1/info")
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.text
    assert 'adsh_requests_total{method="GET",path="/v1/items/{key}",status="404"} 3.0' in text
    assert 'adsh_requests_total{method="POST",path="/v1/search",status="200"} 1.0' in text
    assert "adsh_index_items 36.0" in text
    assert "wp-login" not in text
    assert "BREW" not in text


def test_the_page_and_its_files(api):
    page = api.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["cache-control"] == "no-cache"
    again = api.get("/", headers={"if-none-match": page.headers["etag"]})
    assert again.status_code == 304
    for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/static/../../app.py", "//etc/passwd"):
        assert api.get(path).status_code == 404, path


def test_the_description_of_the_api_loads_nothing_from_elsewhere(api):
    answer, described = api.get("/docs"), api.get("/openapi.json").json()
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert not re.search(r"https?:|<script|style=", answer.text)
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert f"<h2>{method.upper()} {path}</h2>" in answer.text
            for status in operation["responses"]:
                assert f"<td>{status}</td>" in answer.text
    for name in ("image", "k", "radius", "filter"):  # what a form takes
        assert f"<code>{name}</code>" in answer.text
    assert "Authorization: Bearer" not in answer.text  # there is no token here
    described["paths"]["/v1/info"]["get"]["security"] = [{"token": []}]
    assert page(described).count("Authorization: Bearer") == 1


def test_there_is_nothing_elsewhere(api):
    assert api.get("/v1/nothing").json()["detail"].startswith("there is nothing at this address")
    assert api.post("/v1/info").status_code == 405
    assert api.put("/v1/search").status_code == 405
