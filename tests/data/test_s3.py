"""Sources on S3, against moto's server: $ADSH_TEST_MOTO is a Python that has moto[server], whose pins are not ours."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from io import BytesIO
from urllib.error import URLError
from urllib.request import Request, urlopen

import numpy as np
import pytest
from PIL import Image

from adsh.data import open_source
from adsh.errors import AdshError

pyarrow = pytest.importorskip("pyarrow")
PYTHON = os.environ.get("ADSH_TEST_MOTO")
pytestmark = pytest.mark.skipif(not PYTHON, reason="$ADSH_TEST_MOTO names no Python with moto[server]")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """What follows s3://bucket/path: the server's address as pyarrow takes it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [str(PYTHON), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(200):
            try:
                urlopen(Request(f"http://127.0.0.1:{port}/photos", method="PUT")).close()
                break
            except URLError:
                time.sleep(0.1)
        yield f"?scheme=http&endpoint_override=127.0.0.1%3A{port}&region=us-east-1&allow_bucket_creation=true"
    finally:
        server.terminate()
        server.wait()


def test_images_and_tables_on_s3_are_sources(s3, tmp_path):
    from pyarrow import fs, parquet

    def address(path):
        return f"s3://key:secret@photos/{path}{s3}"

    files, base = fs.FileSystem.from_uri(address("set"))
    pixels = np.arange(8 * 9 * 3, dtype=np.uint8).reshape(8, 9, 3)
    for kind in ("cats", "dogs"):
        written = BytesIO()
        Image.fromarray(pixels).save(written, "png")
        with files.open_output_stream(f"{base}/{kind}/1.png") as file:
            file.write(written.getvalue())
    dataset = open_source(address("set"))
    assert list(dataset.keys) == ["cats/1.png", "dogs/1.png"]
    assert list(dataset.classes) == ["cats", "dogs"]
    assert np.array_equal(dataset[1], pixels)
    assert "secret" not in dataset.name
    with files.open_output_stream(f"{base}/items.parquet") as file:
        parquet.write_table(pyarrow.table({"image": [written.getvalue()], "label": ["x"]}), file)
    assert np.array_equal(open_source(address("set/items.parquet"))[0], pixels)
    with pytest.raises(AdshError) as refused:
        open_source(address("no-such/items.parquet"))
    assert "secret" not in str(refused.value)
