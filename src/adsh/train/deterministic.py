"""A mini-batch computed in parts that are alike in any number of processes: the outcome is the same bit for bit.

Every part goes through the network by itself, in a thread of its own: the same rows, shapes and kernels whoever
computes it. Where parts look beyond their rows, and for the gradients, they meet: what each brings is gathered from all
processes and added in the order of the parts, so that it is rounded alike too. For a CPU: the backward passes of a GPU
share one thread, and would wait for each other in it.
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
from .batch_sync import WholeBatch
from .distributed import World

T = TypeVar("T")
Gradients = Sequence[Tensor | None]  # one a weight; None where the outputs do not depend on it
Augment = Callable[[Tensor, Generator, slice, int], Tensor]  # of a share of so many images


class Parts:
    """The parts of every mini-batch that this process computes."""

    def __init__(self, network: nn.Module, activation: Callable[[Tensor], Tensor], world: World) -> None:
        self._network, self._activation, self._world = network, activation, world
        self._weights = [p for p in network.parameters() if p.requires_grad]
        self._here = len(world.shares(0))
        self._networks: list[nn.Module] = []
        self.renew()
        # a kernel's threads are set for each thread: they take the number that this one has
        threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(self._here, "adsh-part", torch.set_num_threads, (threads,))

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()

    def renew(self) -> None:
        """Gives each part a copy of the network as it is now, with the same weights: layers may count and remember.

        The first has the network itself.
        """
        weights = {id(p): p for p in self._network.parameters()}
        copies = (copy.deepcopy(self._network, dict(weights)) for _ in range(self._here - 1))
        self._networks = [self._network, *(each.train() for each in copies)]

    def __call__(self, inputs: Tensor, slope: Callable[[Tensor], Tensor], count: int) -> Tensor:
        """(count, c) the outputs of a mini-batch of which `inputs` are this process's rows; leaves its gradients."""
        shares, meeting, draws = self._world.shares(count), _Meeting(self._here), _Draws()

        def joined(outputs: list[Tensor]) -> tuple[Tensor, Tensor]:
            draws.check()
            u = self._world.gather(torch.cat(outputs), count)
            return u, slope(u)

        def computed(place: int) -> tuple[Tensor, Gradients]:
            share = shares[place]
            rows = _laid_out(inputs[share.start - shares[0].start : share.stop - shares[0].start])
            whole = WholeBatch(
                share, count,
                lambda values: meeting(place, values, self._sum).clone(),
                lambda draw: meeting(place, draw, draws.once),
            )  # fmt: skip
            with whole:
                outputs = self._networks[place](rows)
            outputs = self._activation(outputs.float())
            u, slopes = meeting(place, outputs.detach(), joined)
            return u, torch.autograd.grad(outputs, self._weights, _laid_out(slopes[share]), allow_unused=True)

        done = meeting.held(self._pool, computed)
        self._leave([gradients for _, gradients in done])
        return done[0][0]

    def _sum(self, values: Sequence[Tensor]) -> Tensor:
        """The sum over the parts of all processes, from those of this one: the first and the second, and so on."""
        every = self._world.gather(torch.stack(list(values)), self._world.parts)  # (parts, …)
        return reduce(Tensor.add, every.unbind())

    def _leave(self, gradients: Sequence[Gradients]) -> None:
        """Leaves the sums at the weights, in one message a type of number."""
        kinds: dict[torch.dtype, list[int]] = {}
        for number, gradient in enumerate(gradients[0]):
            if gradient is not None:
                kinds.setdefault(gradient.dtype, []).append(number)
        for numbers in kinds.values():
            summed = self._sum([torch.cat([_flat(part[i]) for i in numbers]) for part in gradients])
            weights = [self._weights[i] for i in numbers]
            for weight, gradient in zip(weights, torch.split(summed, [w.numel() for w in weights]), strict=True):
                weight.grad = gradient.view_as(weight)


class _Meeting:
    """Where the threads of a step wait for each other: what they bring is joined by one of them, for all."""

    def __init__(self, count: int) -> None:
        self._brought: list[Any] = [None] * count
        self._barrier = Barrier(count, self._join)
        self._how: Callable[[list[Any]], Any] = list
        self._joined: Any = None

    def __call__(self, place: int, brought: Any, how: Callable[[list[Any]], T]) -> T:
        """What `how` makes of what all brought, in their order."""
        self._brought[place], self._how = brought, how
        self._barrier.wait()
        joined: T = self._joined  # until all are here again
        return joined

    def _join(self) -> None:
        self._joined = self._how(self._brought)

    def held(self, pool: ThreadPoolExecutor, work: Callable[[int], T]) -> list[T]:
        """What `work` gives in each place, all at once; the first thing that goes wrong ends all of them."""

        def one(place: int) -> T:
            try:
                return work(place)
            except BaseException:
                self._barrier.abort()  # or the others would wait for ever
                raise

        running: list[Future[T]] = [pool.submit(one, place) for place in range(len(self._brought))]
        try:
            wait(running)
        except BaseException:  # Ctrl-C
            self._barrier.abort()
            raise
        problems = [problem for each in running if (problem := each.exception()) is not None]
        if problems:  # the cause, not that the others waited for it
            raise min(problems, key=lambda problem: isinstance(problem, BrokenBarrierError))
        return [each.result() for each in running]


class _Draws:
    """Random numbers of a step, drawn by one thread for the whole mini-batch. All others would be a matter of luck."""

    def __init__(self) -> None:
        self._state = torch.get_rng_state()

    def once(self, draws: list[Callable[[], Tensor]]) -> Tensor:
        self.check()
        drawn = draws[0]()
        self._state = torch.get_rng_state()
        return drawn

    def check(self) -> None:
        if not torch.equal(self._state, torch.get_rng_state()):
            raise InputError(
                "a layer of the network draws random numbers that parts cannot share: use torch's dropout, randn_like "
                "or rand_like there, or train with parts=1"
            )


def by_part(augment: Augment, world: World) -> Augment:
    """The same random changes, computed part by part."""

    def changed(inputs: Tensor, generator: Generator, share: slice, count: int) -> Tensor:
        before, parts = generator.get_state(), []
        for part in world.shares(count):
            generator.set_state(before)  # each draws for the whole mini-batch, and takes its rows
            parts.append(augment(inputs[part.start - share.start : part.stop - share.start], generator, part, count))
        return torch.cat(parts)

    return changed


def _laid_out(rows: Tensor) -> Tensor:
    """A copy that lies in memory as any other of its shape: kernels are chosen by strides and alignment too."""
    return rows.new_empty(rows.shape).copy_(rows)


def _flat(gradient: Tensor | None) -> Tensor:
    assert gradient is not None
    return gradient.reshape(-1)
