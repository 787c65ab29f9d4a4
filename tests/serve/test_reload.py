"""A service goes on answering while its model is updated, and answers with the newer one soon after."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from http.client import HTTPConnection

import numpy as np
import pytest
from PIL import Image

from adsh.models.fingerprint import identify

from .conftest import Process, png

YELLOW = (220, 210, 40)


@pytest.fixture
def served(artifacts, tmp_path):
    """A trained run with its index, served; and new images of another colour."""
    rng = np.random.default_rng(3)
    (tmp_path / "new" / "yellow").mkdir(parents=True)
    for number in range(12):
        pixels = np.clip(np.array(YELLOW) + rng.normal(0, 30, size=(40, 36, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / "new" / "yellow" / f"new{number}.png")
    adsh(
        tmp_path, "train", artifacts.photos, "--bits", 24, "--network", "tiny", "--size", 32, "--outer", 20,
        "--protocol", "all", "--out", "m", "--no-report",
    )  # fmt: skip
    process = Process(tmp_path / "m", "--token", "t", log=tmp_path / "log.jsonl")
    yield process, tmp_path
    assert process.end() == 0


def adsh(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "adsh", *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def post(connection, path, body, kind="application/json"):
    connection.request("POST", path, body, {"Authorization": "Bearer t", "Content-Type": kind})
    response = connection.getresponse()
    return response.status, response.read()


def form(image):
    head = b'--xx\r\nContent-Disposition: form-data; name="image"; filename="image"\r\n\r\n'
    return head + image + b"\r\n--xx--\r\n", "multipart/form-data; boundary=xx"


def wait_for_model(process, fingerprint):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if any(fingerprint[:12] in line.get("text", "") for line in process.logged()):
            return
        time.sleep(0.1)
    raise AssertionError(process.log.read_text()[-2000:])


@pytest.fixture
def connection(served):
    with closing(HTTPConnection("127.0.0.1", served[0].port)) as opened:
        yield opened


def test_no_request_fails_while_the_model_is_updated(served, connection):
    process, folder = served
    stop, statuses, problems = threading.Event(), [], []

    def ask(number):
        with closing(HTTPConnection("127.0.0.1", process.port, timeout=30)) as own:
            ask_on(own, number)

    def ask_on(connection, number):
        body, kind = form(png(YELLOW))
        key = json.dumps({"key": f"red/{number} é.png", "filter": {"class": "red"}}).encode()
        while not stop.is_set():
            for path, content, content_kind in (
                ("/v1/search", body, kind), ("/v1/search", key, "application/json"),
            ):  # fmt: skip
                try:
                    status, answer = post(connection, path, content, content_kind)
                except OSError as problem:
                    problems.append(repr(problem))
                    return
                statuses.append(status)
                if status != 200:
                    problems.append(answer)
            connection.request("GET", "/readyz")
            ready = connection.getresponse()
            ready.read()
            statuses.append(ready.status)

    clients = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for client in clients:
        client.start()
    try:
        adsh(folder, "update", "m", "new", "--outer", 20)
        wait_for_model(process, identify(folder / "m").fingerprint)
        time.sleep(0.5)
    finally:
        stop.set()
        for client in clients:
            client.join()
    assert problems == []
    assert set(statuses) == {200}
    assert len(statuses) > 50
    body, kind = form(png(YELLOW))
    status, answer = post(connection, "/v1/search", body, kind)
    assert status == 200
    assert json.loads(answer)["matches"][0]["metadata"]["class"] == "yellow"
    connection.request("GET", "/v1/info", headers={"Authorization": "Bearer t"})
    assert json.loads(connection.getresponse().read())["model"]["points"] == 48


def test_a_model_is_loaded_again_by_request_and_by_signal(served, connection):
    process, folder = served
    first = identify(folder / "m").fingerprint
    assert json.loads(post(connection, "/v1/reload", b"")[1]) == {"model": first, "changed": False}
    connection.request("POST", "/v1/reload", b"")
    refused = connection.getresponse()
    refused.read()
    assert refused.status == 401
    process.process.send_signal(signal.SIGHUP)
    time.sleep(1.5)
    assert process.process.poll() is None
    assert connection.request("GET", "/readyz") is None
    assert connection.getresponse().read() == b"ready\n"


def test_a_stranger_never_takes_over(served, connection, artifacts):
    folder = served[1]
    adsh(
        folder, "train", artifacts.photos, "--bits", 24, "--network", "tiny", "--size", 32, "--outer", 1, "--seed", 5,
        "--out", "other", "--no-report", "--no-index",
    )  # fmt: skip
    for name in (
        *("model.safetensors", "replay.safetensors", "familiarity.safetensors"),
        *("config.json", "codes.safetensors", "row_numbers.npy"),
    ):
        shutil.copyfile(folder / "other" / name, folder / "m" / name)
    status, answer = post(connection, "/v1/reload", b"")
    assert status == 422
    assert "is not the one whose codes the index holds" in json.loads(answer)["detail"]
    body, kind = form(png())
    assert post(connection, "/v1/search", body, kind)[0] == 200
