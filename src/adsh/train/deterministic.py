"""A mini-batch computed in shards: the result is the same bit for bit in any number of processes.

Every shard goes through the network by itself, in a thread of its own: the same rows, shapes and kernels whichever
process computes it. Layers that look beyond their rows, and gradients, need all shards: the contributions are gathered
from all processes and added in the order of the shards, so that rounding is the same too. For a CPU alone: the backward
passes of a GPU share one thread, and would wait for each other in it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import reduce
from threading import Barrier, BrokenBarrierError
from typing import Any, TypeVar

import torch
from torch import Generator, Tensor, nn

from ..errors import InputError
from .batch_sync import BatchSync
from .distributed import ProcessGroup
from .state import Activation, Augment

T = TypeVar("T")
Gradients = Sequence[Tensor | None]  # one a weight; None where the outputs do not depend on it


class ShardedBatch:
    """Computes this process's shards of every mini-batch."""

    def __init__(self, network: nn.Module, activation: Activation, group: ProcessGroup) -> None:
        self._network, self._activation, self._group = network, activation, group
        self._weights = [p for p in network.parameters() if p.requires_grad]
        self._count = len(group.shard_slices(0))  # shards of this process
        self._networks: list[nn.Module] = []
        self.renew()
        # the number of kernel threads is a setting of each thread: take this one's
        threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(self._count, "adsh-shard", torch.set_num_threads, (threads,))

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def renew(self) -> None:
        """Give each shard a copy of the network as it is now, sharing the weights: layers may count and remember.

        The first shard has the network itself.
        """
        weights = {id(p): p for p in self._network.parameters()}
        copies = (copy.deepcopy(self._network, dict(weights)) for _ in range(self._count - 1))
        self._networks = [self._network, *(each.train() for each in copies)]

    def __call__(self, inputs: Tensor, gradient: Callable[[Tensor], Tensor], size: int) -> Tensor:
        """Compute a mini-batch, and leave the weights' gradients.

        Args:
            inputs: this process's rows.
            gradient: the loss's gradient by the outputs of all rows.
            size: rows of the whole mini-batch.

        Returns:
            (size, c) the outputs of all rows.
        """
        slices, rendezvous, draws = self._group.shard_slices(size), _Rendezvous(self._count), _SharedDraws()

        def join_outputs(outputs: list[Tensor]) -> tuple[Tensor, Tensor]:
            draws.check()
            u = self._group.gather(torch.cat(outputs), size)
            return u, gradient(u)

        def compute(shard: int) -> tuple[Tensor, Gradients]:
            rows = slices[shard]
            own = _standard_layout(inputs[rows.start - slices[0].start : rows.stop - slices[0].start])
            sync = BatchSync(
                rows, size,
                lambda values: rendezvous(shard, values, self._sum).clone(),
                lambda draw: rendezvous(shard, draw, draws.once),
            )  # fmt: skip
            with sync:
                outputs = self._networks[shard](own)
            outputs = self._activation(outputs.float())
            u, by_outputs = rendezvous(shard, outputs.detach(), join_outputs)
            by_weights = torch.autograd.grad(
                outputs, self._weights, _standard_layout(by_outputs[rows]), allow_unused=True
            )
            return u, by_weights

        results = rendezvous.run(self._pool, compute)
        self._set_gradients([gradients for _, gradients in results])
        return results[0][0]

    def _sum(self, values: Sequence[Tensor]) -> Tensor:
        """Add the values of all shards of all processes, in the order of the shards."""
        by_shard = self._group.gather(torch.stack(list(values)), self._group.shards)  # (shards, …)
        return reduce(Tensor.add, by_shard.unbind())

    def _set_gradients(self, gradients: Sequence[Gradients]) -> None:
        """Leave the sums over all shards at the weights, in one message a data type."""
        by_type: dict[torch.dtype, list[int]] = {}
        for number, gradient in enumerate(gradients[0]):
            if gradient is not None:
                by_type.setdefault(gradient.dtype, []).append(number)
        for numbers in by_type.values():
            total = self._sum([torch.cat([_flat(of_shard[i]) for i in numbers]) for of_shard in gradients])
            weights = [self._weights[i] for i in numbers]
            for weight, gradient in zip(weights, torch.split(total, [w.numel() for w in weights]), strict=True):
                weight.grad = gradient.view_as(weight)


class _Rendezvous:
    """Where the threads of a step wait for each other: one of them joins what all bring."""

    def __init__(self, count: int) -> None:
        self._values: list[Any] = [None] * count
        self._barrier = Barrier(count, self._join)
        self._joiner: Callable[[list[Any]], Any] = list
        self._joined: Any = None

    def __call__(self, shard: int, value: Any, joiner: Callable[[list[Any]], T]) -> T:
        """Return what `joiner` makes of the values of all shards, in their order."""
        self._values[shard], self._joiner = value, joiner
        self._barrier.wait()
        joined: T = self._joined  # stays until all threads are here again
        return joined

    def _join(self) -> None:
        self._joined = self._joiner(self._values)

    def run(self, pool: ThreadPoolExecutor, work: Callable[[int], T]) -> list[T]:
        """Return the results of `work` for every shard, computed at once; the first error ends all of them."""

        def run_one(shard: int) -> T:
            try:
                return work(shard)
            except BaseException:
                self._barrier.abort()  # or the others would wait for ever
                raise

        running: list[Future[T]] = [pool.submit(run_one, shard) for shard in range(len(self._values))]
        try:
            wait(running)
        except BaseException:  # Ctrl-C
            self._barrier.abort()
            raise
        problems = [problem for future in running if (problem := future.exception()) is not None]
        if problems:  # raise the cause, not that the others waited for it
            raise min(problems, key=lambda problem: isinstance(problem, BrokenBarrierError))
        return [future.result() for future in running]


class _SharedDraws:
    """Random numbers of a step, drawn by one thread for the whole mini-batch; any other draw is an error."""

    def __init__(self) -> None:
        self._state = torch.get_rng_state()

    def once(self, draws: list[Callable[[], Tensor]]) -> Tensor:
        self.check()
        values = draws[0]()
        self._state = torch.get_rng_state()
        return values

    def check(self) -> None:
        if not torch.equal(self._state, torch.get_rng_state()):
            raise InputError(
                "a layer of the network draws random numbers that shards cannot share: use torch's dropout, randn_like "
                "or rand_like there, or train with deterministic_shards=1"
            )


def shard_by_shard(augment: Augment, group: ProcessGroup) -> Augment:
    """Return an augmentation that makes the same random changes, computed shard by shard."""

    def apply(inputs: Tensor, generator: Generator, share: slice, size: int) -> Tensor:
        start, results = generator.get_state(), []
        for rows in group.shard_slices(size):
            generator.set_state(start)  # each draws for the whole mini-batch, and takes its rows
            results.append(augment(inputs[rows.start - share.start : rows.stop - share.start], generator, rows, size))
        return torch.cat(results)

    return apply


def _standard_layout(rows: Tensor) -> Tensor:
    """Return a copy whose strides and alignment depend on its shape alone: kernels are chosen by them too."""
    return rows.new_empty(rows.shape).copy_(rows)


def _flat(gradient: Tensor | None) -> Tensor:
    assert gradient is not None
    return gradient.reshape(-1)
