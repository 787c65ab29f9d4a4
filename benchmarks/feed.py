"""Images a second into the network, for each way of keeping them, beside what the network itself can take.

    python benchmarks/feed.py            2,000 JPEG files of 320 x 240, at 64 with `tiny` and at 224
    python benchmarks/feed.py --images 500 --only-feed     fewer, and without the reading of every file once

The files are made first, so they are in the system's own cache: what is measured is decoding and handing over, not
the disk. Batches of 128 in random order, as Algorithm 1 reads them. `training` is a step of `tiny` on every batch of
the same epoch: where it comes near to the step alone, the feed is not what training waits for. The reading of every
file once, which fills a cache, is measured with threads and with processes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import record
import torch
from PIL import Image

from adsh.data import Dataset, as_items, digests, open_source, prepare
from adsh.data.duplicates import item_digest
from adsh.data.images.resized import ResizedDataset
from adsh.data.loader import DeviceLoader
from adsh.data.reader_pool import worker_count
from adsh.networks import create_network
from adsh.utils.device import choose_device, threads_for

BATCH, BITS = 128, 48


def write_files(root: Path, count: int) -> Path:
    """Photograph-like JPEG files: smooth colours with some grain, in ten classes."""
    rng = np.random.default_rng(0)
    for at in range(count):
        smooth = Image.fromarray(rng.integers(0, 256, (15, 20, 3), dtype=np.uint8)).resize((320, 240))
        grain = rng.normal(0, 8, (240, 320, 3))
        folder = root / f"class{at % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = (np.asarray(smooth) + grain).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{at:05}.jpg", quality=90)
    return root


def rate(count: int, work: Callable[[], Any], repeats: int = 3) -> int:
    """Images a second: the best of some runs, since other programs only ever slow one down."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return round(count / best)


def run_through(inputs: Iterable[torch.Tensor], device: torch.device) -> None:
    for _ in inputs:
        pass
    if device.type == "cuda":
        torch.cuda.synchronize()


class Step:
    """Forward, backward and update of `tiny` on a batch."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.network = create_network("tiny", BITS, (size, size, 3)).to(device)
        self.optimizer = torch.optim.AdamW(self.network.parameters())

    def __call__(self, inputs: torch.Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        torch.tanh(self.network(inputs)).square().mean().backward()
        self.optimizer.step()


def measure_feeds(root: Path, size: int, device: torch.device, cache: Path) -> dict[str, Any]:
    source = open_source(root)
    n = len(source)
    batches = np.array_split(np.random.default_rng(0).permutation(n), range(BATCH, n, BATCH))
    lazy = ResizedDataset(source, size)
    ways: dict[str, tuple[Dataset, int | None]] = {
        "files, no workers": (lazy, 0),
        f"files, {worker_count(None)} workers": (lazy, None),
        "cache in memory": (prepare(source, size, cache="ram").dataset, None),
        "cache on disk, memory-mapped": (prepare(source, size, cache=str(cache)).dataset, None),
    }
    step, figures = Step(size, device), {}
    trains = size == 64 or device.type == "cuda"  # `tiny` at 224 on a CPU is no feed's problem
    with threads_for(step.network, device):
        held = DeviceLoader(as_items(lazy), device)(batches[0])

        def alone() -> None:
            run_through((step(held) for _ in batches), device)

        at_hand = 0
        for name, (dataset, workers) in ways.items():
            with DeviceLoader(as_items(dataset), device, workers) as feed:

                def training(feed: DeviceLoader = feed) -> None:
                    run_through((step(inputs) for inputs in feed.epoch(batches)), device)

                if trains:  # beside each way, so that all have the same moments of a shared machine
                    at_hand = max(at_hand, rate(len(batches) * len(held), alone, 2))
                where = " (on the device)" if feed.on_device else ""
                fed = rate(n, lambda feed=feed: run_through(feed.epoch(batches), device))
                figures[name + where] = {"feed": fed, **({"training": rate(n, training)} if trains else {})}
    return {"the step of tiny alone": at_hand, "ways": figures}


def decoded(task: tuple[str, range]) -> list[tuple[bytes, Any]]:
    root, indices = task
    source = open_source(root) if root not in _SOURCES else _SOURCES[root]
    _SOURCES[root] = source
    sized = ResizedDataset(source, 224)
    images = [source[index] for index in indices]
    return [(item_digest(image), sized.fitted(image)) for image in images]


_SOURCES: dict[str, Dataset] = {}


def by_processes(root: Path, count: int, workers: int) -> None:
    """What filling a cache would be with processes that send their images back."""
    images = np.empty((count, 224, 224, 3), dtype=np.uint8)
    tasks = [(str(root), range(at, min(at + 16, count))) for at in range(0, count, 16)]
    at = 0
    with ProcessPoolExecutor(workers) as pool:
        for some in pool.map(decoded, tasks):
            for _, image in some:
                images[at] = image
                at += 1


def measure_filling(root: Path) -> dict[str, int]:
    source, cores = open_source(root), worker_count(None)
    n = len(source)
    figures = {
        f"{workers} threads": rate(n, lambda w=workers: prepare(source, 224, workers=w), 2)
        for workers in (0, cores, 2 * cores)
    }
    figures[f"{cores} processes"] = rate(n, lambda: by_processes(root, n, cores), 2)
    figures["digests alone, one thread"] = rate(n, lambda: digests(source), 1)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--only-feed", action="store_true")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    count = arguments.images
    choice = choose_device(arguments.device)
    figures: dict[str, Any] = {"device": str(choice), "images": count, "unit": "images/s"}
    with tempfile.TemporaryDirectory() as folder:
        root = write_files(Path(folder) / "images", count)
        if not arguments.only_feed:
            figures["reading all once, at 224"] = measure_filling(root)
        for size in (64, 224):
            figures[f"at {size}"] = measure_feeds(root, size, choice.device, Path(folder) / "cache")
    for name, value in figures.get("reading all once, at 224", {}).items():
        print(f"reading all once, {name:<34}{value:>10,} images/s")
    for size in (64, 224):
        held = figures[f"at {size}"]
        print(f"\nat {size}, images/s{'':<26}{'feed':>10}{'training':>10}")
        for name, values in held["ways"].items():
            print(f"{name:<42}{values['feed']:>10,}{values.get('training', ''):>10}")
        print(f"{'the step of tiny alone':<42}{'':>10}{held['the step of tiny alone'] or '':>10}")
    if count >= 500:  # fewer are for a look
        name = "feed" if choice.device.type == "cpu" else f"feed-{choice.device.type}"
        print(record.write(name, figures, ("numpy", "pillow", "torch")))


if __name__ == "__main__":
    main()
