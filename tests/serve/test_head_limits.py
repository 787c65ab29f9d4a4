"""Heads of requests: too large, too slow, or on too many connections; sent as raw bytes."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import pytest

uvicorn = pytest.importorskip("uvicorn")

from adsh.serve.middleware.head_limits import IDLE_SECONDS, MAX_HEAD, LimitedHeadProtocol  # noqa: E402  # after the check that uvicorn is there

from .test_process import HEAD, raw  # noqa: E402  # the same

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


class Hasty(LimitedHeadProtocol):
    head_timeout = 0.4


async def app(scope, receive, send):
    body, more = b"", True
    while more and scope["path"] != "/early":
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if scope["path"] == "/slow":
        import asyncio

        await asyncio.sleep(1)
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(b"%d" % len(body)))]}
    )
    await send({"type": "http.response.body", "body": b"%d" % len(body)})


@contextmanager
def serving(protocol=LimitedHeadProtocol, **options):
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None, **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="module")
def port():
    with serving() as port:
        yield port


@pytest.fixture(scope="module")
def hasty():
    with serving(Hasty, timeout_keep_alive=60) as port:
        yield port


def closed_after(port: int, *pieces: bytes, every: float = 0.0, most: float = 4.0) -> tuple[float, bytes]:
    """How long the server let a client go on that sends these, the last one again and again; and what it said."""
    started, said = time.monotonic(), b""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for piece in pieces:
            connection.sendall(piece)
        connection.settimeout(every or most)
        while time.monotonic() - started < most:
            try:
                data = connection.recv(65536)
            except TimeoutError:
                if every:
                    connection.sendall(pieces[-1])
                continue
            except OSError:
                break
            if not data:
                break
            said += data
    return time.monotonic() - started, said


@pytest.mark.parametrize(
    "pieces",
    [
        [GET + b"X: ", *[b"x" * 1_000_000] * 60],
        [GET, *[b"a: b\r\n" * 10_000] * 100],
        [GET + b"X: " + b"x" * (MAX_HEAD + 1) + b"\r\n\r\n"],  # whole, in one piece
        [GET + b"a:b\r\n" * 20_000 + b"\r\n"],
        [b"GET /" + b"x" * 300_000],
        [b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", *[b"a: b\r\n" * 10_000] * 10],
    ],
    ids=["one header", "many headers", "whole", "many, whole", "address", "trailers"],
)
def test_a_head_that_is_too_large_is_refused_at_once(port, pieces):
    started = time.monotonic()
    answer = raw(port, *pieces)
    trailers = pieces[0].startswith(b"POST")
    assert answer.startswith(b"HTTP/1.1 431 ") or (trailers and answer == b"")
    assert trailers or b"more than 65,536 bytes" in answer
    assert time.monotonic() - started < 5
    assert raw(port, GET + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_the_real_server_refuses_them_too(live):
    answer = raw(live.port, GET + b"X: ", *[b"x" * 1_000_000] * 60)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b'"request_id":null' in answer
    assert raw(live.port, HEAD + b"X: " + b"x" * 60_000 + b"\r\nContent-Length: 2\r\n\r\n{}").startswith(
        b"HTTP/1.1 422"
    )


@pytest.mark.parametrize("address", [b"http://a:99999999/", b"http://a", b"\xff"])
def test_an_address_that_is_none_is_refused(port, address, caplog):
    answer = raw(port, b"GET " + address + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"detail":"this is not valid HTTP' in answer
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_long_body_is_no_long_head(port):
    body = b"x" * 3_000_000
    for head in (b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nX: " + b"x" * 60_000 + b"\r\n"):
        whole = head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        assert raw(port, whole).endswith(b"3000000")
        chunks = b"a\r\n0123456789\r\n" * 50_000 + b"0\r\n\r\n"
        whole = head + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
        assert raw(port, whole).endswith(b"500000")


def test_a_head_that_does_not_come_is_not_waited_for(hasty):
    seconds, said = closed_after(hasty)
    assert (0.3 < seconds < 3, said) == (True, b"")
    seconds, said = closed_after(hasty, GET, b"a: b\r\n", every=0.1)
    assert 0.3 < seconds < 3
    assert said.startswith(b"HTTP/1.1 408 ")
    seconds, said = closed_after(hasty, GET + b"\r\n", b"\r\n", every=0.1)  # blank lines after a request keep nobody
    assert (seconds < 3, said.startswith(b"HTTP/1.1 200")) == (True, True)


def test_a_body_that_was_answered_already_keeps_nobody(hasty):
    head = b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
    seconds, said = closed_after(hasty, head, b"x", every=0.1)
    assert (0.8 < seconds < 3, said.startswith(b"HTTP/1.1 200")) == (True, True)


def test_a_body_that_was_answered_already_may_end(port):
    head = b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        connection.sendall(b"x" * 1_000_000 + GET + b"\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


def test_the_answer_before_a_slow_head_is_sent(hasty):
    _, said = closed_after(hasty, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", GET)
    assert said.startswith(b"HTTP/1.1 200")


def test_a_slow_body_has_the_time_of_its_request(hasty):
    with socket.create_connection(("127.0.0.1", hasty), timeout=5) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\n")
        for _ in range(6):
            time.sleep(0.15)
            connection.sendall(b"x")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_many_requests_on_one_connection(hasty):
    with socket.create_connection(("127.0.0.1", hasty), timeout=5) as connection:
        for _ in range(4):
            connection.sendall(GET + b"\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            time.sleep(0.3)  # longer than a head may take, all together


def test_more_connections_than_are_allowed_are_reported_so():
    with serving(limit_concurrency=5) as port:
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
        try:
            time.sleep(0.2)
            answer = raw(port, GET + b"\r\n")
            assert answer.startswith(b"HTTP/1.1 503")
            assert b"retry-after: 1" in answer
            assert b"too many connections are open: try again" in answer
            assert b"connection: close" in answer
        finally:
            for one in idle:
                one.close()
        time.sleep(0.2)
        assert raw(port, GET + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_far_more_connections_are_cut_off(monkeypatch):
    monkeypatch.setattr("adsh.serve.middleware.head_limits._REFUSED_CONNECTIONS", 2)
    with serving(limit_concurrency=3) as port:
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        try:
            time.sleep(0.2)
            assert raw(port, GET + b"\r\n") == b""
        finally:
            for one in idle:
                one.close()


def test_the_service_is_started_with_them(monkeypatch, tmp_path):
    from adsh.serve import run

    seen = {}

    class Stop(Exception):
        pass

    def config(app, **options):
        seen.update(options)
        raise Stop

    monkeypatch.setattr(run, "create_app", lambda *_, **__: None)
    monkeypatch.setattr(run, "log_as_json", lambda write: None)
    monkeypatch.setattr(run.uvicorn, "Config", config)
    with pytest.raises(Stop):
        run.serve(None, run.Settings(tmp_path, "index"), None)
    assert (seen["http"], seen["limit_concurrency"], seen["timeout_keep_alive"]) == (
        LimitedHeadProtocol,
        2048,
        IDLE_SECONDS,
    )
