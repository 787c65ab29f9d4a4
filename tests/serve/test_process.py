"""The real process: started, queried by raw bytes and by the client, stopped under load."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import adsh
from adsh.client import Client, ServiceError

from .conftest import Process, png


@pytest.fixture
def client(live):
    with Client(live.url, token="s3cret") as client:
        yield client


def raw(port: int, *pieces: bytes) -> bytes:
    """What the server sends for these bytes, until it closes or says nothing for a while."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except OSError:  # it has refused already
                break
        answer = b""
        connection.settimeout(1)
        try:
            while data := connection.recv(65536):
                answer += data
        except OSError:
            pass
        return answer


HEAD = (
    b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\nContent-Type: application/json\r\n"
)


def test_the_client_does_what_the_api_does(client, artifacts, tmp_path):
    path = next(artifacts.photos.rglob("*.png"))
    by_path, by_bytes = client.search(path, k=3), client.search(path.read_bytes(), k=3)
    assert by_path == by_bytes
    assert len(by_path["matches"]) == 3
    code = client.encode(path)["code"]
    assert client.search(code=code, k=2)["code"] == client.search(code=bytes.fromhex(code), k=2)["code"] == code
    assert client.add("über/1 ?.png", path, metadata={"class": "new"})["new"]
    assert not client.add("über/1 ?.png", code="010203", metadata={"class": "newer"})["new"]
    assert client.get("über/1 ?.png") == {"key": "über/1 ?.png", "code": "010203", "metadata": {"class": "newer"}}
    assert client.search(key="über/1 ?.png", k=1, filter={"class": "newer"})["matches"][0]["distance"] == 0
    assert client.add_many([{"key": "m/1", "code": "000001"}, {"key": "m/2", "code": b"\0\0\2"}])["new"] == 2
    assert [client.remove(key) for key in ("m/1", "m/2", "über/1 ?.png", "m/1")] == [True, True, True, False]
    assert client.get("m/1") is None
    assert client.image("red/3 é.png") == (artifacts.photos / "red" / "3 é.png").read_bytes()
    assert client.info()["items"] >= 36
    assert client.ready()


def test_the_client_says_what_is_wrong(client, live):
    with pytest.raises(ServiceError, match=r"has 2 characters.*\(status 422\)") as refusal:
        client.search(code="a1")
    assert (refusal.value.status, len(refusal.value.request_id)) == (422, 16)
    with Client(live.url) as bare, pytest.raises(ServiceError, match="needs a token"):
        bare.info()
    with pytest.raises(ServiceError, match=r"did not answer .*is it running"):
        Client("http://127.0.0.1:9", timeout=2).info()
    with pytest.raises(ServiceError, match=r"more than 200,000 bytes|too large"):
        client.encode(b"x" * 3_000_000)
    with pytest.raises(ValueError, match="is not the address of a service"):
        Client("localhost:8000")
    with pytest.raises(ValueError, match="one of image, key and code"):
        client.search()


@pytest.mark.parametrize(
    "key", [".", "..", "100%25", "%2e%2e", "..%2foutside%2fa.png", "a\nb", "a;b", "é", "a/image", " "]
)
def test_keys_arrive_as_they_were_sent(client, key):
    assert client.add(key, code="000000")["key"] == key
    assert client.get(key)["key"] == key
    assert client.remove(key)


def test_a_chunked_body_over_the_limit_is_cut_off(live):
    chunk = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    answer = raw(live.port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 60)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer
    declared = raw(live.port, HEAD + b"Content-Length: 9999999\r\n\r\n", b"x" * 1000)
    assert declared.startswith(b"HTTP/1.1 413")


def test_a_body_in_tiny_pieces_is_cut_off(live):
    """Each costs a call of the parser, as a large one does."""
    space = b"1\r\n \r\n"
    start = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"1\r\n%c\r\n" % byte for byte in b'{"code":"000000"}') + b"0\r\n\r\n"
    assert raw(live.port, start + space * 500 + body).startswith(b"HTTP/1.1 200")
    assert raw(live.port, start + space * 30_000 + body)[:10] in (b"", b"HTTP/1.1 4")


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1e9\r\n\r\n",
        b"GET /v1/items/\xff HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\n\r\n",
        b"GET /v1/items/%ff%fe HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\n\r\n",
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/items/../../../etc/passwd/image HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_odd_requests_are_refused_and_the_server_goes_on(live, client, data):
    answer = raw(live.port, data)
    assert answer[:10] in (b"", b"HTTP/1.1 4")
    assert b"root:" not in answer
    assert client.ready()


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"TLS/1.0"])
def test_a_request_for_another_protocol_is_answered_as_http(live, client, protocol):
    """What followed it was left unanswered, and two warnings were logged for each."""
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: %s\r\nHTTP2-Settings: AAMAAABk\r\n" % protocol
    logged = len(live.logged())
    hidden = b"DELETE /v1/items/red/1%20%C3%A9.png HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\n\r\n"
    get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + upgrade + b"\r\n"
    answer = raw(live.port, get + hidden)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer
    body = b'{"code":"000000"}'
    post = HEAD + upgrade + b"Content-Length: %d\r\n\r\n" % len(body) + body
    assert raw(live.port, post).startswith(b"HTTP/1.1 200")
    assert client.get("red/1 é.png") is not None
    assert [line["level"] for line in live.logged()[logged:] if line["level"] != "info"] == []


def test_a_client_that_goes_away_disturbs_nobody(live, client):
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", live.port)) as connection:
            connection.sendall(HEAD + b"Content-Length: 500\r\n\r\n{")
    assert client.search(code="000000")["matches"]


def test_the_log_has_a_line_for_each_request(live, client):
    client.get("logged")
    lines: list[dict] = []
    until = time.monotonic() + 10
    while not lines and time.monotonic() < until:  # written once the answer is sent
        lines = [line for line in live.logged() if line.get("path") == "/v1/items/logged"]
    line = lines[-1]
    assert {"time", "level", "id", "method", "path", "status", "ms"} == set(line)
    assert "s3cret" not in live.log.read_text()


def test_a_stop_finishes_what_was_accepted(artifacts, tmp_path):
    shutil.copytree(artifacts.index, tmp_path / "index")
    server = Process(artifacts.model, tmp_path / "index", log=tmp_path / "log.jsonl")
    stored, problems, stopping = [], [], threading.Event()

    def write(who):
        with Client(server.url) as client:
            for at in range(10_000):
                try:
                    client.add(f"{who}/{at}", code=f"{who:02x}{at:04x}")
                    stored.append(f"{who}/{at}")
                except ServiceError as problem:
                    if not stopping.is_set() or problem.status not in (None, 503):
                        problems.append(problem)
                    return

    def look(_):
        with Client(server.url) as client:
            while True:
                try:
                    client.search(png(), k=3)
                except ServiceError as problem:
                    if not stopping.is_set() or problem.status not in (None, 503):
                        problems.append(problem)
                    return

    threads = [threading.Thread(target=work, args=(who,)) for who in range(3) for work in (write, look)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while len(stored) < 10 and time.monotonic() < deadline:  # it answers: a signal before that stops its start
        time.sleep(0.05)
    time.sleep(0.5)
    stopping.set()
    started = time.monotonic()
    assert server.end() == 0
    assert time.monotonic() - started < 20
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(stored) > 3
    with adsh.open_index(tmp_path / "index") as index:
        assert None not in index.get(stored)
        assert index.verify() == []
    assert not [line for line in server.logged() if line["level"] != "info"]


def test_an_accepted_request_is_answered_after_the_signal(artifacts, tmp_path):
    server = Process(artifacts.model, artifacts.index, log=tmp_path / "log.jsonl")
    body = json.dumps({"code": "000000"}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(100).startswith(b"HTTP/1.1 100")  # it is accepted, and waits for the rest
        connection.sendall(body[:5])
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        connection.sendall(body[5:])
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    with server.process:
        assert server.process.wait(20) == 0


def test_the_service_needs_no_torch_of_its_own():
    code = (
        "import sys\nsys.modules['torch'] = None\n"
        "import adsh.serve.http.app, adsh.serve.run, adsh.cli.serve, adsh.client\n"
        "from adsh.encoders.base import open_encoder\nfrom pathlib import Path\n"
        "try:\n    open_encoder(Path('none'), 'onnx')\n"
        "except Exception as problem:\n    assert 'torch' not in str(problem)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_searches_by_many_clients_at_once_are_all_right(live):
    async def ask(at):
        reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
        try:
            for step in range(20):
                body = json.dumps({"code": f"{at:02x}00{step:02x}", "k": 1 + at % 5}).encode()
                writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                answer = json.loads(await reader.readexactly(length))
                assert (answer["code"], len(answer["matches"])) == (f"{at:02x}00{step:02x}", 1 + at % 5)
        finally:
            writer.close()
            await writer.wait_closed()

    async def all_of_them():
        await asyncio.gather(*(ask(at) for at in range(32)))

    asyncio.run(all_of_them())
