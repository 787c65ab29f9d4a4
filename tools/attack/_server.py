"""A real `adsh serve` with a small model and index, and what its processes take."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import adsh
from adsh.client import Client
from adsh.data import ResizedDataset, open_source

BITS, ITEMS, SIDE = 24, 20_000, 32


def create(folder: Path) -> tuple[Path, Path]:
    """Train a tiny model on two colours, and index random codes; return both folders."""
    rng = np.random.default_rng(0)
    for name, colour in (("red", (200, 40, 40)), ("blue", (50, 60, 200))):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(10):
            pixels = np.clip(np.array(colour) + rng.normal(0, 30, size=(40, 36, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / name / f"{number}.png")
    photos = ResizedDataset(open_source(str(folder / "photos")), SIDE)
    adsh.ADSH(BITS, network="tiny", outer=2, progress=False).fit(photos, save_to=folder / "model")
    codes = rng.integers(0, 256, size=(ITEMS, BITS // 8), dtype=np.uint8)
    with adsh.open_index(folder / "index", bits=BITS, model=folder / "model") as index:
        about = [{"class": f"c{at % 10}", "year": 1950 + at % 70} for at in range(ITEMS)]
        index.add([f"key/{at}" for at in range(ITEMS)], codes, about)
    return folder / "model", folder / "index"


class Server:
    """The process, whose log goes to a file, or to a pipe that is never read.

    Args:
        model: The folder of the model.
        index: The folder of the index.
        flags: Further flags of `adsh serve`.
        log: Where its log goes.
    """

    def __init__(self, model: Path, index: Path, *flags: str, log: Any) -> None:
        command = [sys.executable, "-m", "adsh", "serve", str(model), str(index), "--port", "0", "--json", *flags]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        environment.pop("ADSH_TOKEN", None)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True)
        assert self.process.stdout is not None
        lines: list[str] = []
        while not lines or not lines[-1].startswith("}"):
            lines.append(self.process.stdout.readline())
            assert lines[-1], "the service did not start"
        self.url: str = json.loads("".join(lines))["url"]
        self.port = int(self.url.rpartition(":")[2])
        with Client(self.url) as client:
            while not client.ready():
                time.sleep(0.02)
            client.encode(_image())  # a decoder is started
        self._stopped = threading.Event()
        self.start_memory = self.peak_memory = memory(self.process.pid)
        self._monitor = threading.Thread(target=self._watch, daemon=True)
        self._monitor.start()

    def _watch(self) -> None:
        while not self._stopped.wait(0.25):
            with suppress(OSError):
                self.peak_memory = max(self.peak_memory, memory(self.process.pid))

    def stop(self, number: int = signal.SIGTERM, seconds: float = 120.0) -> float:
        """End it; return how long that took."""
        self._stopped.set()
        self._monitor.join()
        started = time.monotonic()
        self.process.send_signal(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return time.monotonic() - started

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()


def memory(pid: int) -> int:
    """Return the bytes of memory of a process and its children, shared pages divided among those that share them."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    size = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) << 10
    for child in children(pid):
        with suppress(OSError, StopIteration):
            size += memory(child)
    return size


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process."""
    with suppress(OSError):
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [int(word) for text in texts for word in text.split()]
    return []


def _image() -> bytes:
    from io import BytesIO

    file = BytesIO()
    Image.new("RGB", (40, 32), (200, 40, 40)).save(file, "PNG")
    return file.getvalue()
