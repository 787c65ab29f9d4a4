"""Batches of items on the device, the next ones read while the network works on this one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .items import Items
from .reader_pool import worker_count

_SHARE = 0.5  # of the free memory of the device, which the items may take
_CHUNK = 16  # images a thread reads in one go
_SENT = 1 << 28  # bytes sent to the device in one go
_AHEAD = 2  # batches read in advance, at least

Batch = NDArray[Any] | Tensor


class DeviceLoader:
    """Batches of items on the device: features as float32, images as (b, channels, H, W) in 0 .. 1, channels last.

    Where all images are in an array and fit on the GPU, they are sent there once, and a batch is a gather there.
    Otherwise images are read by threads. A loader is a context manager: its threads end with the block.

    Args:
        items: what to load.
        device: where the batches go.
        workers: threads that read; by default as many as the source allows.
    """

    def __init__(self, items: Items, device: torch.device, workers: int | None = None) -> None:
        self.items, self.device = items, device
        self._all: Tensor | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._pinned = device.type == "cuda"
        if device.type == "cuda" and items.is_array and len(items.shape) == 3:
            free, _ = torch.cuda.mem_get_info(device)
            if len(items) * int(np.prod(items.shape)) < _SHARE * free:
                self._all = self._send_all()
        self.workers = worker_count(items.workers if workers is None else workers)
        if not self.workers and self._pinned and len(items.shape) == 3 and items.is_array:
            self.workers = 1  # so that copying into pinned memory overlaps with the network

    @property
    def on_device(self) -> bool:
        """Whether all items are on the device, so that indices are best passed as tensors there."""
        return self._all is not None

    def __call__(self, indices: Batch) -> Tensor:
        """Return the items at these indices."""
        if self._all is not None:
            return as_inputs(self._all[torch.as_tensor(indices, device=self.device)])
        return as_inputs(torch.from_numpy(self.items.take(_as_numpy(indices))).to(self.device))

    def epoch(self, batches: Iterable[Batch]) -> Iterator[Tensor]:
        """Yield the items of each batch in turn; while one is used, the next are being read."""
        if self._all is not None or not self.workers:
            yield from map(self, batches)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="adsh-loader")
        pending: deque[tuple[Tensor, list[Future[None]]]] = deque()
        try:
            for indices in batches:
                pending.append(self._start_batch(self._pool, _as_numpy(indices)))
                enough = sum(len(chunks) for _, chunks in pending) > 2 * self.workers
                if len(pending) > _AHEAD and enough:
                    yield self._finish_batch(*pending.popleft())
            while pending:
                yield self._finish_batch(*pending.popleft())
        finally:
            for _, chunks in pending:
                for chunk in chunks:
                    chunk.cancel()

    def close(self) -> None:
        """End the threads, once they have finished what they are reading."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def __enter__(self) -> DeviceLoader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start_batch(self, pool: ThreadPoolExecutor, indices: NDArray[Any]) -> tuple[Tensor, list[Future[None]]]:
        """Return a batch to be filled, and the tasks that fill it."""
        kind = torch.uint8 if len(self.items.shape) == 3 else torch.float32
        batch = torch.empty((len(indices), *self.items.shape), dtype=kind, pin_memory=self._pinned)
        rows = batch.numpy()

        def read(start: int) -> None:
            chunk = indices[start : start + _CHUNK]
            rows[start : start + len(chunk)] = self.items.take(chunk)

        return batch, [pool.submit(read, start) for start in range(0, len(indices), _CHUNK)]

    def _finish_batch(self, batch: Tensor, chunks: list[Future[None]]) -> Tensor:
        for chunk in chunks:
            chunk.result()
        return as_inputs(batch.to(self.device, non_blocking=self._pinned))

    def _send_all(self) -> Tensor:
        """Return all images on the device, without a second copy of them all in host memory."""
        n, shape = len(self.items), self.items.shape
        images = torch.empty((n, *shape), dtype=torch.uint8, device=self.device)
        step = max(1, _SENT // int(np.prod(shape)))
        for start in range(0, n, step):
            block = self.items.take(np.arange(start, min(start + step, n)))
            images[start : start + len(block)] = torch.from_numpy(block)
        return images


def _as_numpy(indices: Batch) -> NDArray[Any]:
    return indices.cpu().numpy() if isinstance(indices, Tensor) else indices


def as_inputs(batch: Tensor) -> Tensor:
    """Return a batch as a network takes it: images (b, H, W, channels) of uint8 as (b, channels, H, W) in 0 .. 1."""
    return batch.permute(0, 3, 1, 2).float().div(255) if batch.ndim == 4 else batch
