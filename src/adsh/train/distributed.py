"""One training run in several processes: each computes some rows of every mini-batch, and all learn the same.

The outputs of a mini-batch are gathered before the loss's gradient is computed, so every process has the gradient that
a single one would have; each passes its own rows of it back through the network, and the weights' gradients are summed.
U is then the same bits in every process, and so are the codes computed from it. A single process does none of this.
With `shards`, the result does not depend on the number of processes: see `deterministic.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..errors import AdshError, InputError, PeerLostError, TrainingError, first_line
from .batch_sync import BatchSync

T = TypeVar("T")


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of a run, the rank of this one, and the shards in which they compute a mini-batch."""

    rank: int = 0
    size: int = 1
    shards: int = 1  # a multiple of `size`; 1 for one a process, however many there are

    @staticmethod
    def current(shards: int = 1) -> ProcessGroup:
        """Return torch.distributed's default group where there is one; else this process alone."""
        group = ProcessGroup(shards=shards)
        if dist.is_available() and dist.is_initialized():
            group = ProcessGroup(dist.get_rank(), dist.get_world_size(), shards)
        if shards > 1 and shards % group.size:
            raise InputError(
                f"deterministic_shards={shards} in {group.size} processes: give a multiple of {group.size}, or as many "
                f"processes as divide {shards}"
            )
        return group

    @property
    def is_single(self) -> bool:
        """Whether this is the only process."""
        return self.size == 1

    @property
    def is_rank0(self) -> bool:
        """Whether this is the process that writes files and reports."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """Return which of `count` rows are this process's; shares differ by one row at most."""
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def shard_slices(self, count: int) -> list[slice]:
        """Return which of `count` rows are in each of this process's shards, in order."""
        own = max(self.shards // self.size, 1)
        borders = [(self.rank * own + i) * count // (self.size * own) for i in range(own + 1)]
        return [slice(start, stop) for start, stop in pairwise(borders)]

    def gather(self, rows: Tensor, count: int) -> Tensor:
        """Return the (count, …) rows of all processes in order, from each one's share; the same bits everywhere."""
        if self.is_single:
            return rows
        gathered = rows.new_full((count, *rows.shape[1:]), -0.0)  # adding -0 leaves any number as it is, -0 too
        gathered[self.share(count)] = rows
        return self.sum(gathered)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over all processes; it may overwrite `values`."""
        if self.is_single:
            return values
        with _communication():
            on_device = values.cuda() if dist.get_backend() == "nccl" and not values.is_cuda else values
            dist.all_reduce(on_device)
        return on_device.to(values.device)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over all processes, in one message a data type."""
        if self.is_single:
            return
        by_type: dict[torch.dtype, list[Tensor]] = {}
        for p in parameters:
            if p.grad is not None:
                by_type.setdefault(p.grad.dtype, []).append(p.grad)
        for gradients in by_type.values():
            total = self.sum(torch.cat([g.reshape(-1) for g in gradients]))
            for gradient, values in zip(gradients, torch.split(total, [g.numel() for g in gradients]), strict=True):
                gradient.copy_(values.view_as(gradient))

    def batch_sync(self, size: int) -> AbstractContextManager[Any]:
        """Return a context in which noise, dropout and batch norm see all `size` rows of the mini-batch."""
        return nullcontext() if self.is_single else BatchSync(self.share(size), size, self.sum)

    def broadcast_parameters(self, *networks: nn.Module | None) -> None:
        """Give every process the weights and statistics of rank 0."""
        if self.is_single:
            return
        for network in networks:
            for tensor in network.state_dict().values() if network is not None else ():
                contiguous = tensor.contiguous()  # a message has no strides
                with _communication():
                    dist.broadcast(contiguous, 0)
                tensor.copy_(contiguous)

    def broadcast_from_rank0(self, compute: Callable[[], T]) -> T:
        """Return in every process what `compute` returns in rank 0; what it raises there is raised in all."""
        if self.is_single:
            return compute()
        message: list[Any] = [None, None]  # the result, or the error
        if self.is_rank0:
            try:
                message[0] = compute()
            except AdshError as problem:
                message[1] = problem
        with _communication():
            dist.broadcast_object_list(message, 0)
        if message[1] is not None:
            raise message[1]
        result: T = message[0]
        return result

    def assert_equal_across_ranks(self, value: Any, problem: str) -> None:
        """Raise where the processes do not hold equal values."""
        if self.is_single:
            return
        values: list[Any] = [None] * self.size
        with _communication():
            dist.all_gather_object(values, value)
        if any(other != values[0] for other in values):
            raise TrainingError(problem)

    def assert_equal_codes(self, table: Any) -> None:
        """Raise where the processes, each of which updates its own table, no longer hold the same codes."""
        if self.is_single:
            return
        checksum = 0
        for array in table.state().values():
            if np.issubdtype(array.dtype, np.integer):
                checksum = crc32(np.ascontiguousarray(array).data, checksum)
        problem = "the processes no longer hold the same codes: train on machines of one kind"
        self.assert_equal_across_ranks(checksum, problem)

    def _barrier(self) -> None:
        self.assert_equal_across_ranks(0, "")

    @contextmanager
    def local_rank0_first(self, enabled: bool = True) -> Iterator[None]:
        """Let one process of every host go through the block before the others; all at once unless enabled."""
        waits = int(os.environ.get("LOCAL_RANK", self.rank)) > 0
        if enabled and waits:
            self._barrier()
        yield
        if enabled and not waits:
            self._barrier()

    def device(self, device: torch.device) -> torch.device:
        """Return this process's own GPU, where the device is a GPU without a number."""
        if self.is_single or device.type != "cuda" or device.index is not None:
            return device
        return local_gpu()


def local_gpu() -> torch.device:
    """Return the GPU of this process: that of its rank among the processes of this host."""
    available, rank = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", 0))
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", rank + 1))
    if processes > available:
        raise InputError(
            f"{processes} processes on this host, but torch finds {available} GPU{'s' * (available != 1)}: start no "
            "more processes than GPUs, or give --device cpu"
        )
    return torch.device("cuda", rank)


@contextmanager
def _communication() -> Iterator[None]:
    """Turn the error of a message to a process that has ended into one that says so."""
    try:
        yield
    except RuntimeError as problem:
        raise PeerLostError(f"another process of this run has ended ({first_line(problem)})") from None
