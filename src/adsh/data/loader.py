"""From items to the tensors a network takes, the next batches read while the network works on this one."""

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

_SHARE = 0.5  # of the free memory of the device that the items may take
_PIECE = 16  # images a thread reads in one go
_SENT = 1 << 28  # bytes sent to the device in one go
_AHEAD = 2  # batches read before they are asked for, at least

Batch = NDArray[Any] | Tensor


class Feed:
    """Batches of items on the device: features as float32, images as (b, channels, H, W) in 0 .. 1, channels last.

    Where all images are in an array and fit on the GPU they are sent there once, and a batch is a gather there.
    Images that lie elsewhere are read by `workers` threads, as many as the source allows unless given. A feed is a
    context manager: its threads end with the block.
    """

    def __init__(self, items: Items, device: torch.device, workers: int | None = None) -> None:
        self.items, self.device = items, device
        self._all: Tensor | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._pinned = device.type == "cuda"
        if device.type == "cuda" and items.is_array and len(items.shape) == 3:
            free, _ = torch.cuda.mem_get_info(device)
            if len(items) * int(np.prod(items.shape)) < _SHARE * free:
                self._all = self._sent_whole()
        self.workers = worker_count(items.workers if workers is None else workers)
        if not self.workers and self._pinned and len(items.shape) == 3 and items.is_array:
            self.workers = 1  # so that copying into pinned memory goes on beside the network

    @property
    def on_device(self) -> bool:
        """Whether the items are on the device, so that indices are best given as tensors there."""
        return self._all is not None

    def __call__(self, indices: Batch) -> Tensor:
        """The items at these indices."""
        if self._all is not None:
            return ready(self._all[torch.as_tensor(indices, device=self.device)])
        return ready(torch.from_numpy(self.items.take(_plain(indices))).to(self.device))

    def epoch(self, batches: Iterable[Batch]) -> Iterator[Tensor]:
        """The items of each batch in turn, as calling gives them. While one is used, the next are being read."""
        if self._all is not None or not self.workers:
            yield from map(self, batches)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="adsh-feed")
        coming: deque[tuple[Tensor, list[Future[None]]]] = deque()
        try:
            for indices in batches:
                coming.append(self._begun(self._pool, _plain(indices)))
                enough = sum(len(pieces) for _, pieces in coming) > 2 * self.workers
                if len(coming) > _AHEAD and enough:
                    yield self._finished(*coming.popleft())
            while coming:
                yield self._finished(*coming.popleft())
        finally:
            for _, pieces in coming:
                for piece in pieces:
                    piece.cancel()

    def close(self) -> None:
        """Ends the threads; what they are reading just now is finished first."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Feed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begun(self, pool: ThreadPoolExecutor, indices: NDArray[Any]) -> tuple[Tensor, list[Future[None]]]:
        """A batch to be filled, and who fills it."""
        kind = torch.uint8 if len(self.items.shape) == 3 else torch.float32
        batch = torch.empty((len(indices), *self.items.shape), dtype=kind, pin_memory=self._pinned)
        rows = batch.numpy()

        def read(start: int) -> None:
            piece = indices[start : start + _PIECE]
            rows[start : start + len(piece)] = self.items.take(piece)

        return batch, [pool.submit(read, start) for start in range(0, len(indices), _PIECE)]

    def _finished(self, batch: Tensor, pieces: list[Future[None]]) -> Tensor:
        for piece in pieces:
            piece.result()
        return ready(batch.to(self.device, non_blocking=self._pinned))

    def _sent_whole(self) -> Tensor:
        """All images on the device, without a second copy of them all in this machine's memory."""
        n, shape = len(self.items), self.items.shape
        held = torch.empty((n, *shape), dtype=torch.uint8, device=self.device)
        step = max(1, _SENT // int(np.prod(shape)))
        for start in range(0, n, step):
            some = self.items.take(np.arange(start, min(start + step, n)))
            held[start : start + len(some)] = torch.from_numpy(some)
        return held


def _plain(indices: Batch) -> NDArray[Any]:
    return indices.cpu().numpy() if isinstance(indices, Tensor) else indices


def ready(batch: Tensor) -> Tensor:
    """A batch as a network takes it: images, (b, H, W, channels) of uint8, as (b, channels, H, W) in 0 .. 1."""
    return batch.permute(0, 3, 1, 2).float().div(255) if batch.ndim == 4 else batch
