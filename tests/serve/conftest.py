"""A small model and its index, the service in this process, and the real one in a process of its own."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.data import ResizedDataset, open_source
from adsh.encoders.base import Encoding, open_encoder
from adsh.serve.engine.limits import Limits

from .. import forked

NEEDED = ("fastapi", "uvicorn", "python_multipart", "orjson", "prometheus_client", "httpx2")
COLOURS = {"red": (200, 40, 40), "green": (40, 180, 60), "blue": (50, 60, 200)}


def pytest_collection_modifyitems(items):
    missing = [name for name in NEEDED if find_spec(name) is None]
    for item in items:
        if missing and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"{missing[0]} is missing: pip install 'adsh[serve]' httpx2"))


@dataclass(frozen=True)
class Artifacts:
    """What the service is started with."""

    photos: Path
    model: Path
    index: Path


def png(colour=(200, 40, 40), size=(40, 32), kind="PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, kind)
    return file.getvalue()


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory) -> Artifacts:
    """24 bits of three colours: photos, a model of them, and an index with vectors."""
    folder = tmp_path_factory.mktemp("served")
    rng = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(12):
            pixels = np.clip(np.array(colour) + rng.normal(0, 30, size=(40, 36, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / name / f"{number} é.png")
    photos = ResizedDataset(open_source(str(folder / "photos")), 32)
    model = adsh.ADSH(24, network="tiny", outer=3, progress=False).fit(photos, save_to=folder / "model")
    codes, vectors = model.codes_and_features(photos)
    about = [
        {"class": key.split("/")[0], "number": at, "file": str(folder / "photos" / key)}
        for at, key in enumerate(photos.keys)
    ]
    with (
        pytest.warns(adsh.AdshWarning, match="only 36"),
        adsh.open_index(folder / "index", bits=24, model=folder / "model") as index,
    ):
        index.add(list(photos.keys), codes, about, vectors=vectors)
    return Artifacts(folder / "photos", folder / "model", folder / "index")


@pytest.fixture(scope="session")
def encoder(artifacts):
    return open_encoder(artifacts.model)


class Blank:
    """An encoder that records how many images each pass had, and may be held up."""

    bits, fingerprint, vector_size, size = 24, "", 0, 8

    def __init__(self) -> None:
        self.passes: list[int] = []
        self.go = threading.Event()
        self.go.set()

    def encode(self, images) -> Encoding:
        assert self.go.wait(20)
        self.passes.append(len(images))
        outputs = np.ones((len(images), 24), dtype=np.float32)
        return Encoding(np.packbits(outputs > 0, axis=1), outputs, None)

    def close(self) -> None:
        pass


@pytest.fixture
def start(artifacts, encoder, tmp_path):
    """start(token=…, limits=…) gives a client of an app on an index of its own."""
    from starlette.testclient import TestClient

    from adsh.serve.engine.service import Service
    from adsh.serve.http.app import create_app

    opened = []

    def started(*, limits: Limits | None = None, with_encoder: Any = None, images: Path | None = None, **options: Any):
        index = tmp_path / f"index{len(opened)}"
        shutil.copytree(artifacts.index, index)
        service = Service(
            with_encoder or encoder, adsh.open_index(index), limits or Limits(), model=artifacts.model, images=images
        )
        app = create_app(service, **options)
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        client.service, client.index_folder = service, index
        opened.append(client)
        return client.__enter__()

    yield started
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def api(start):
    return start()


class Process:
    """`adsh serve` as people start it."""

    def __init__(self, *arguments: object, log: Path, program: tuple[str, str] = ("-m", "adsh")) -> None:
        self.log = log
        with log.open("wb") as errors:
            start = forked.Popen if program == ("-m", "adsh") else subprocess.Popen
            self.process = start(
                [sys.executable, *program, "serve", *map(str, arguments), "--port", "0", "--json"],
                stdout=subprocess.PIPE, stderr=errors, text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"},
            )  # fmt: skip
        lines: list[str] = []
        while not lines or not lines[-1].startswith("}"):
            line = self.process.stdout.readline()
            assert line, log.read_text()
            lines.append(line)
        self.url = json.loads("".join(lines))["url"]
        self.port = int(self.url.rpartition(":")[2])

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def end(self) -> int:
        self.process.terminate()
        with self.process:
            return self.process.wait(40)


@pytest.fixture(scope="session")
def live(artifacts, tmp_path_factory):
    """The real server, with a token and images."""
    folder = tmp_path_factory.mktemp("live")
    shutil.copytree(artifacts.index, folder / "index")
    process = Process(
        artifacts.model, folder / "index", "--token", "s3cret", "--images", artifacts.photos, "--max-body", "200000",
        log=folder / "log.jsonl",
    )  # fmt: skip
    yield process
    assert process.end() == 0
