"""Images are decoded in processes that are ended when one takes too long, and replaced."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from adsh.data.images.decode import decode
from adsh.data.images.resized import resize_image
from adsh.errors import InputError
from adsh.serve.engine.frames import read_frame, write_frame
from adsh.serve.engine.limits import Limits
from adsh.serve.engine.uploads import decode_upload
from adsh.serve.engine.worker import run_jobs
from adsh.serve.engine.workers import Worker, WorkerPool

from ..data.images.test_structure import exif_bomb
from .conftest import png
from .mutations import valid_images

MEMORY = 2 << 30
OPTIONS = {"size": 32, "max_pixels": 1_000_000}


@pytest.fixture
def worker():
    started = Worker(MEMORY)
    yield started
    started.close()


def test_an_exif_bomb_is_refused_and_others_are_answered(start):
    """800,000 segments took Pillow minutes each, and two of them both decoders."""
    api = start(limits=Limits(max_body=16 << 20))
    for _ in range(2):
        answer = api.post("/v1/encode", files={"image": exif_bomb(800_000)})
        assert (answer.status_code, "of metadata" in answer.json()["detail"]) == (422, True)
    assert api.post("/v1/encode", files={"image": png()}).status_code == 200


def test_a_small_image_waits_for_no_large_one(api):
    """Images of 49 million pixels in a few bytes kept both decoders, and all others waited for seconds."""
    large, pool = png(size=(2000, 1500)), api.service.encode_image._large
    expected = api.post("/v1/encode", files={"image": large}).json()["code"]
    os.kill(stopped := pool._idle[0]._process.pid, signal.SIGSTOP)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(api.post("/v1/encode", files={"image": large}).json()))
    waiting.start()
    for _ in range(3):
        assert api.post("/v1/encode", files={"image": png()}).status_code == 200
    assert answers == []
    os.kill(stopped, signal.SIGCONT)
    waiting.join(20)
    assert answers[0]["code"] == expected


def test_a_worker_decodes_as_the_library_does(worker):
    for name, data in valid_images().items():
        shape, pixels = worker.run("image", {**OPTIONS, "size": 20}, data, 10)
        expected = resize_image(decode(data), 20)
        assert (shape["height"], shape["width"], 3) == expected.shape
        assert pixels == expected.tobytes(), name
    shape, pixels = worker.run("image", {**OPTIONS, "size": 0}, png(size=(40, 32)), 10)
    assert (shape, len(pixels)) == ({"width": 40, "height": 32}, 40 * 32 * 3)


def test_resizing_without_arrays_gives_the_same_pixels():
    rng = np.random.default_rng(0)
    for height, width in ((40, 61), (61, 40), (224, 224), (33, 500), (224, 300)):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, size=(height, width, 3), dtype=np.uint8)).save(file, "PNG")
        _, pixels = decode_upload({"size": 224, "max_pixels": 10**7}, file.getvalue())
        assert pixels == resize_image(decode(file.getvalue()), 224).tobytes()


def test_a_job_that_takes_too_long_is_ended_and_the_next_one_is_done():
    pool = WorkerPool(1, MEMORY, 0.5, "test")
    slow = exif_bomb(0)
    started = time.monotonic()
    worker = pool._take()
    os.kill(worker._process.pid, signal.SIGSTOP)  # as if it were busy for ever
    pool._idle.append(worker)
    with pytest.raises(InputError, match=r"took longer than 0\.5 s"):
        pool.run("image", OPTIONS, slow)
    assert time.monotonic() - started < 20
    pool._seconds = 30
    assert pool.run("image", OPTIONS, png())[0] == {"width": 32, "height": 32}
    pool.close()


def test_a_worker_ends_itself_when_a_job_takes_too_long(worker):
    """Even where the service was killed and nobody waits."""
    assert worker._process.stdin is not None
    file = io.BytesIO()
    Image.effect_noise((2000, 2000), 90).save(file, "PNG")
    header = {"job": "image", "options": {"size": 32, "max_pixels": 10**7}, "seconds": 0.001}
    write_frame(worker._process.stdin, header, file.getvalue())
    assert worker._process.wait(20) == -signal.SIGALRM


def test_a_worker_ends_with_its_input_and_ignores_the_signals_of_the_service(worker):
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(worker._process.pid, number)
    assert worker.run("image", OPTIONS, png(), 10)[0]["width"] == 32
    worker._process.stdin.close()
    assert worker._process.wait(20) == 0


def test_a_worker_that_was_killed_is_replaced(start):
    api = start()
    pool = api.service.encode_image._decoders
    assert api.post("/v1/encode", files={"image": png()}).status_code == 200
    pool._idle[0]._process.kill()
    pool._idle[0]._process.wait()
    assert api.post("/v1/encode", files={"image": png()}).status_code == 200


def test_a_machine_without_room_for_a_process_is_answered_with_503(start, monkeypatch):
    def fail(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    api = start()
    monkeypatch.setattr("adsh.serve.engine.workers.subprocess.Popen", fail)
    answer = api.post("/v1/encode", files={"image": png()})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    monkeypatch.undo()
    assert api.post("/v1/encode", files={"image": png()}).status_code == 200


def test_a_worker_knows_no_token(monkeypatch):
    monkeypatch.setenv("ADSH_TOKEN", "s3cret")
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    worker = Worker(MEMORY)
    assert b"s3cret" not in Path(f"/proc/{worker._process.pid}/environ").read_bytes()
    worker.close()


def test_memory_is_bounded_in_a_worker():
    worker = Worker(600 << 20)
    file = io.BytesIO()
    Image.new("L", (20_000, 20_000)).save(file, "PNG")
    with pytest.raises(InputError):
        worker.run("image", {"size": 32, "max_pixels": 10**9}, file.getvalue(), 30)
    worker.close()


def test_jobs_are_done_until_the_input_ends(tmp_path):
    jobs = io.BytesIO()
    for data in (png(), b"no image", exif_bomb(5000)):
        write_frame(jobs, {"job": "image", "options": OPTIONS, "seconds": 0}, data)
    jobs = io.BytesIO(jobs.getvalue() + b"cut")
    results = io.BytesIO()
    run_jobs(jobs, results)
    results.seek(0)
    headers = [read_frame(results)[0] for _ in range(4)]
    assert headers[:2] == [{"ready": True}, {"width": 32, "height": 32}]
    assert "no image of a known format" in headers[2]["refused"]
    assert "pieces of metadata" in headers[3]["refused"]
    assert read_frame(results) is None
