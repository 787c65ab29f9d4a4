"""One training run on several processes: each computes some rows of every mini-batch, and all learn the same.

A mini-batch's outputs are brought together before the slope of the loss is asked for, so every process sees the slope
that one alone would see, pushes its own rows of it back through the network, and the gradients are added up. U is
then the same bits everywhere, and so are the codes computed from it. One process alone does none of this. With
`parts`, the outcome does not depend on how many processes there are: see `parts.py`.
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
from .batch_sync import WholeBatch

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """The processes of a run, which of them this is, and in how many parts they compute a mini-batch."""

    rank: int = 0
    size: int = 1
    parts: int = 1  # a multiple of `size`; 1 for one a process, however many there are

    @staticmethod
    def now(parts: int = 1) -> World:
        """The processes of torch.distributed's default group where there is one; else this one alone."""
        world = World(parts=parts)
        if dist.is_available() and dist.is_initialized():
            world = World(dist.get_rank(), dist.get_world_size(), parts)
        if parts > 1 and parts % world.size:
            raise InputError(
                f"parts={parts} in {world.size} processes: give a multiple of {world.size}, or as many processes as "
                f"divide {parts}"
            )
        return world

    @property
    def alone(self) -> bool:
        """Whether there is no other."""
        return self.size == 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and speaks."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """Which of `count` rows are this process's: as many as another's, or one more."""
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def shares(self, count: int) -> list[slice]:
        """The same by the parts that this process computes, in order."""
        here = max(self.parts // self.size, 1)
        borders = [(self.rank * here + i) * count // (self.size * here) for i in range(here + 1)]
        return [slice(start, stop) for start, stop in pairwise(borders)]

    def gather(self, rows: Tensor, count: int) -> Tensor:
        """(count, …) the rows of all processes in order, from each one's share of them; the same bits everywhere."""
        if self.alone:
            return rows
        whole = rows.new_full((count, *rows.shape[1:]), -0.0)  # which added to any number leaves it as it is, -0 too
        whole[self.share(count)] = rows
        return self.total(whole)

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes, written over `values` where they are on the processes' own device."""
        if self.alone:
            return values
        with _together():
            there = values.cuda() if dist.get_backend() == "nccl" and not values.is_cuda else values
            dist.all_reduce(there)
        return there.to(values.device)

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Every gradient becomes its sum over all processes, in one message a type of number."""
        if self.alone:
            return
        kinds: dict[torch.dtype, list[Tensor]] = {}
        for p in parameters:
            if p.grad is not None:
                kinds.setdefault(p.grad.dtype, []).append(p.grad)
        for gradients in kinds.values():
            summed = self.total(torch.cat([g.reshape(-1) for g in gradients]))
            for gradient, part in zip(gradients, torch.split(summed, [g.numel() for g in gradients]), strict=True):
                gradient.copy_(part.view_as(gradient))

    def whole_batch(self, count: int) -> AbstractContextManager[Any]:
        """In it, layers that look beyond a row (noise, dropout, batch norm) see all `count` rows of the mini-batch."""
        return nullcontext() if self.alone else WholeBatch(self.share(count), count, self.total)

    def start_alike(self, *networks: nn.Module | None) -> None:
        """Gives every process the weights and statistics of the first."""
        if self.alone:
            return
        for network in networks:
            for tensor in network.state_dict().values() if network is not None else ():
                held = tensor.contiguous()  # a message has no strides
                with _together():
                    dist.broadcast(held, 0)
                tensor.copy_(held)

    def from_first(self, make: Callable[[], T]) -> T:
        """What `make` gives in the first process, in all of them; what it raises there is raised in all."""
        if self.alone:
            return make()
        said: list[Any] = [None, None]
        if self.first:
            try:
                said[0] = make()
            except AdshError as problem:
                said[1] = problem
        with _together():
            dist.broadcast_object_list(said, 0)
        if said[1] is not None:
            raise said[1]
        made: T = said[0]
        return made

    def check_alike(self, value: Any, problem: str) -> None:
        """Raises where the processes do not hold equal values."""
        if self.alone:
            return
        told: list[Any] = [None] * self.size
        with _together():
            dist.all_gather_object(told, value)
        if any(other != told[0] for other in told):
            raise TrainingError(problem)

    def check_codes(self, table: Any) -> None:
        """Raises where the tables of the processes, each updated by its own process, are no longer the same."""
        if self.alone:
            return
        mark = 0
        for array in table.state().values():
            if np.issubdtype(array.dtype, np.integer):
                mark = crc32(np.ascontiguousarray(array).data, mark)
        self.check_alike(mark, "the processes no longer hold the same codes: train on machines of one kind")

    @contextmanager
    def one_a_host_first(self, wanted: bool = True) -> Iterator[None]:
        """One process of every host goes through the block, then the others; all at once where it is not wanted."""
        waits = int(os.environ.get("LOCAL_RANK", self.rank)) > 0
        if wanted and waits:
            self.check_alike(0, "")  # is a barrier
        yield
        if wanted and not waits:
            self.check_alike(0, "")

    def device(self, device: torch.device) -> torch.device:
        """This process's own GPU, where the device is a GPU without a number."""
        if self.alone or device.type != "cuda" or device.index is not None:
            return device
        return own_gpu()


def own_gpu() -> torch.device:
    """The GPU of this process: that of its number among the processes of this host."""
    there, mine = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", 0))
    here = int(os.environ.get("LOCAL_WORLD_SIZE", mine + 1))
    if here > there:
        raise InputError(
            f"{here} processes on this host, but torch finds {there} GPU{'s' * (there != 1)}: start no more "
            "processes than GPUs, or give --device cpu"
        )
    return torch.device("cuda", mine)


@contextmanager
def _together() -> Iterator[None]:
    """A message between processes: it fails where one of them is gone."""
    try:
        yield
    except RuntimeError as problem:
        raise PeerLostError(f"another process of this run is gone ({first_line(problem)})") from None
