"""The client without a service: what it refuses, what it sends, and what it says when nobody answers."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from adsh.client import Client, ServiceError


@pytest.fixture
def answers():
    """A server that answers with the status and body in `state`, and notes the requests."""
    state = {"status": 200, "body": b"{}", "requests": [], "busy": []}

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state["requests"].append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(state["status"] if not state["busy"] else state["busy"].pop(0))
            if state.get("retry_after") is not None:
                self.send_header("Retry-After", state["retry_after"])
            self.send_header("Content-Length", str(len(state["body"])))
            self.end_headers()
            self.wfile.write(state["body"])

        do_POST = do_PUT = do_DELETE = do_PATCH = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        state["url"] = f"http://127.0.0.1:{server.server_port}/below/"
        yield state
        server.shutdown()
        thread.join()


def test_a_bad_request_is_refused_before_anything_is_sent():
    for address in ("127.0.0.1:8000", "ftp://there", "http://"):
        with pytest.raises(ValueError, match="is not the address of a service"):
            Client(address)
    client = Client("https://127.0.0.1:1")
    with pytest.raises(ValueError, match="give one of image, key and code"):
        client.search(key="a", code="00")
    with pytest.raises(ValueError, match="give one of image and code"):
        client.add("a")


def test_keys_are_whole_in_the_address_and_404_is_an_answer(answers):
    with Client(answers["url"]) as client:
        answers["body"] = json.dumps({"items": 2}).encode()
        assert client.info() == {"items": 2}
        client.add("a/b c", code=b"\x01\xff")
        answers["body"] = b"\x89PNG"
        assert client.image("a/b c") == b"\x89PNG"
        answers.update(status=404, body=b'{"detail": "there is none"}')
        assert client.get("a/b c") is None
        assert client.remove("a/b c") is False
        assert client.ready() is False
    key = "/below/v1/items/a%2Fb%20c"
    assert answers["requests"] == [
        "GET /below/v1/info", f"PUT {key}", f"GET {key}/image", f"GET {key}", f"DELETE {key}", "GET /below/readyz",
    ]  # fmt: skip


@pytest.mark.parametrize("body", [b"<html>a proxy", b"[]", b"{}"])
def test_a_refusal_that_is_not_the_services_own_is_reported_by_its_status(answers, body):
    answers.update(status=502, body=body)
    with Client(answers["url"]) as client:
        for ask in (client.info, lambda: client.get("a"), lambda: client.remove("a")):
            with pytest.raises(ServiceError, match="the service answered with status 502") as problem:
                ask()
            assert problem.value.status == 502


def test_nobody_there_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = Client(f"http://127.0.0.1:{port}", timeout=5)
    assert client.ready() is False
    with pytest.raises(ServiceError, match=r"did not answer \(.*refused\): is it running\?$"):
        client.info()
    with pytest.raises(ServiceError, match="or is the request too large for it"):
        client.search(b"x" * (1 << 21))


@pytest.mark.parametrize(("second", "expected"), [(b"HTTP/1.1 404 Not Found", True), (b"HTTP/1.1 204 None", True)])
def test_a_delete_whose_answer_was_lost_counts_as_done(second, expected):
    """It was repeated, answered with 404, and said False."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            one, _ = listening.accept()
            one.recv(65536)
            one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            one.recv(65536)  # the first DELETE: done, and the connection lost
            one.close()
            one, _ = listening.accept()
            one.recv(65536)
            one.sendall(second + b"\r\nContent-Length: 0\r\n\r\n")
            one.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with Client(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=10) as client:
            client.info()
            assert client.remove("a") is expected
        thread.join()


def test_a_delete_on_a_connection_that_was_closed_before_is_sent_once():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        requests, closed = [], threading.Event()

        def serve() -> None:
            one, _ = listening.accept()
            one.recv(65536)
            one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            one.close()
            closed.set()
            one, _ = listening.accept()
            requests.append(one.recv(65536))
            one.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            one.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with Client(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=10) as client:
            client.info()
            closed.wait(10)
            assert client.remove("a") is False
        thread.join()
        assert len(requests) == 1


def test_a_request_is_sent_again_when_a_busy_service_says_so(answers, monkeypatch):
    waited = []
    monkeypatch.setattr("adsh.client.time.sleep", waited.append)
    answers.update(busy=[429, 503], retry_after="2", body=b'{"detail": "busy", "request_id": null}')
    with Client(answers["url"]) as client:
        client.info()
        assert (waited, len(answers["requests"])) == ([2.0, 2.0], 3)
        answers["busy"] = [429] * 10
        with pytest.raises(ServiceError, match="busy") as refused:
            client.info()
        assert refused.value.status == 429
        assert len(answers["requests"]) == 3 + 4
        answers["busy"] = [429]
        answers["retry_after"] = "86400"
        client.info()
        assert waited[-1] == 30.0
    answers["busy"], answers["requests"] = [500], []
    with Client(answers["url"]) as client, pytest.raises(ServiceError):
        client.info()  # not busy, but broken
    assert len(answers["requests"]) == 1
    answers.update(busy=[429], requests=[], retry_after="2")
    with Client(answers["url"], retries=0) as client, pytest.raises(ServiceError):
        client.info()
    assert len(answers["requests"]) == 1
