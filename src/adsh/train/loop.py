"""Algorithm 1: learn the network and the codes, in turn.

    n, c     database points, bits              Omega  m points sampled anew each outer iteration
    Theta    the network's parameters           U      (m, c) tanh(F(y_i; Theta)) of the sampled points
    V        the codes, held by the CodeTable   T_out, T_in   outer iterations, epochs over Omega in each

Every random choice of outer iteration w comes from (seed, w) alone. Other methods that train a network batch by batch
use the same loop, with a table and a gradient of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from ..config import Recipe
from ..errors import InputError, TrainingError
from ..learn.objective import ObjectiveTerms
from ..learn.similarity import Indices
from ..networks.class_lookup import split_scores
from ..utils.earlier_names import accepts_earlier
from .deterministic import shard_by_shard
from .distributed import ProcessGroup
from .forward import network_outputs
from .state import Activation, Augment, BatchGradient, Loader, MakeGradient, Record, Table, TrainState
from .step import LossGradient, Step

Hook = Callable[[TrainState], None]


@dataclass
class Iteration:
    """One outer iteration: its sample, and what has been learned of it so far."""

    number: int  # w, from 0
    omega: Indices  # (m,) the sampled points
    order: Indices  # (m,) the order in which an epoch visits them
    gradient: BatchGradient | None  # of the loss, at the present codes; None where they have changed
    outputs: Tensor  # (m, c) U, as the mini-batches left it
    rng: np.random.Generator
    generator: Generator  # for augmentation, on the device
    last_inputs: Tensor | None = None  # of the last mini-batch
    objective: float = 0.0  # J of eq. (3) or (4), at the codes just updated
    code_seconds: float = 0.0  # spent updating codes
    started: float = field(default_factory=time.perf_counter)


@dataclass
class Trainer:
    """Trains `network` and `table` in place. The processes of `group` share the work, and end with the same result."""

    network: nn.Module
    loader: Loader
    table: Table
    recipe: Recipe
    device: torch.device
    seed: int = 0
    augment: Augment | None = None
    make_gradient: MakeGradient = ObjectiveTerms.of  # of eqs. (3) and (4)
    activation: Activation = torch.tanh
    group: ProcessGroup = ProcessGroup()  # noqa: RUF009  # frozen

    def fit(self, *, on_start: Hook | None = None, on_iteration: Hook | None = None) -> list[Record]:
        """Run Algorithm 1.

        Args:
            on_start: called before the first iteration; it may put an earlier state in place.
            on_iteration: called with the state after each outer iteration.

        Returns:
            One record an outer iteration, those of an earlier state included.
        """
        state = TrainState(self.network, self.step.optimizer, self.table, [], self.step.average)
        if on_start:
            on_start(state)
        self.step.resume(len(state.history))
        self.group.broadcast_parameters(self.network, state.average)
        with closing(self.step):
            self._warm_up()
            for w in range(len(state.history), self.recipe.outer):
                iteration = self._sample(w)  # Omega
                for epoch in range(self.recipe.inner):
                    self._run_epoch(iteration)  # Theta, with V fixed
                    if epoch == self.recipe.inner - 1 or self.recipe.code_update_interval == "epoch":
                        self._update_codes(iteration)  # V, with Theta fixed: eq. (9)
                state.history.append(self._record(iteration))
                if on_iteration:
                    on_iteration(state)
            self.step.finish()
        return state.history

    @cached_property
    def m(self) -> int:
        """The size of Omega."""
        m = min(self.recipe.samples, self.table.num_sampleable)
        if m < self.group.size:
            raise InputError(f"{self.group.size} processes share {m} sampled points: start no more than {m}")
        return m

    @cached_property
    def step(self) -> Step:
        """The optimization step."""
        return Step(self.network, self.recipe, len(self._cuts) + 1, self.device, self.activation, self.group)

    @cached_property
    def _cuts(self) -> list[int]:
        return batch_cuts(self.m, self.recipe.batch_size)

    @cached_property
    def _gamma(self) -> float:
        return 0.0 if self.table.separate_queries else self.recipe.gamma

    @cached_property
    def _augment(self) -> Augment | None:
        if self.augment is None or self.group.shards == 1:
            return self.augment
        return shard_by_shard(self.augment, self.group)

    def _gradient(self, omega: Indices) -> BatchGradient:
        return self.make_gradient(self.table, omega, self._gamma, self.device)

    def _warm_up(self) -> None:
        """Compile, capture and load kernels on a GPU, before the first iteration."""
        self._set_up_seconds = 0.0
        if self.device.type != "cuda":
            return
        started = time.perf_counter()
        for size in dict.fromkeys(np.diff([0, *self._cuts, self.m]).tolist()):  # the usual one, and the last batch's
            share = self.group.share(size)
            inputs = self.loader(self.table.draw(size, np.random.default_rng(self.seed))[share])
            if self._augment is not None:
                inputs = self._augment(inputs, Generator(self.device), share, size)
            self.step.warm_up(inputs, size)
        self.table.warm_up(self.m, self.device)
        self._set_up_seconds = time.perf_counter() - started

    def _sample(self, w: int) -> Iteration:
        """Draw Omega, and everything random of outer iteration w, from (seed, w)."""
        started = time.perf_counter()
        self.step.start_iteration()
        rng = np.random.default_rng([self.seed, w])
        torch.manual_seed(int(rng.integers(1 << 62)))
        generator = Generator(self.device).manual_seed(torch.initial_seed() >> 1)
        omega = self.table.draw(self.m, rng)
        order = rng.permutation(self.m)
        outputs = torch.empty((self.m, self.table.bits), device=self.device)
        return Iteration(w, omega, order, self._gradient(omega), outputs, rng, generator, started=started)

    def _run_epoch(self, iteration: Iteration) -> None:
        """Pass once over Omega in mini-batches, each a step of the optimizer; keep their outputs as U."""
        if iteration.gradient is None:
            iteration.gradient = self._gradient(iteration.omega)
        omega: Any = iteration.omega
        self.network.train()
        positions = torch.as_tensor(iteration.order, device=self.device).tensor_split(self._cuts)  # one transfer
        batches: Any = positions
        if self.loader.on_device:
            omega = torch.as_tensor(omega, device=self.device)
        else:
            batches = np.split(iteration.order, self._cuts)
        shares = [omega[batch[self.group.share(len(batch))]] for batch in batches]
        for inputs, at in zip(self.loader.epoch(shares), positions, strict=True):
            size = len(at)
            if self._augment is not None:
                inputs = self._augment(inputs, iteration.generator, self.group.share(size), size)
            iteration.outputs[at] = self.step(inputs, self._scaled(iteration.gradient[at], size), size)
            iteration.last_inputs = inputs
        if self.recipe.reshuffle:
            iteration.order = iteration.rng.permutation(self.m)

    def _scaled(self, gradient: BatchGradient, size: int) -> LossGradient:
        """Return the gradient of a mini-batch, as the recipe divides it."""
        share = size / self.recipe.batch_size
        if self.recipe.divisor == "batch" or share == 1:
            return gradient
        return lambda outputs: gradient(outputs) * share

    def _update_codes(self, iteration: Iteration) -> None:
        """Update V by eq. (9), given U."""
        if self.recipe.refresh_outputs == "fresh":
            iteration.outputs = self._fresh_outputs(iteration.omega)
        self._check_finite(iteration.outputs, iteration.number)  # waits for the device
        started = time.perf_counter()
        for _ in range(self.recipe.sweeps):
            iteration.objective = self.table.update(
                iteration.omega, iteration.outputs, self._gamma, signed=self.recipe.use_sign_outputs
            )
        iteration.gradient = None
        self.group.assert_equal_codes(self.table)
        iteration.code_seconds += time.perf_counter() - started

    def _fresh_outputs(self, omega: Indices) -> Tensor:
        """(m, c) U by a pass in evaluation mode, shared among the processes."""
        scores, _ = split_scores(self.network)
        shares = [omega[share] for share in self.group.shard_slices(self.m)]
        outputs = [
            u for share in shares for u in network_outputs(scores, self.loader, share, activation=self.activation)
        ]
        return self.group.gather(torch.cat(outputs), self.m)

    def _record(self, iteration: Iteration) -> Record:
        """Return the figures of a finished iteration."""
        seconds = time.perf_counter() - iteration.started
        set_up_seconds, self._set_up_seconds = self._set_up_seconds, 0.0
        if iteration.number == self.recipe.outer - 1:  # what the last step did is in no outputs yet
            assert iteration.last_inputs is not None
            with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16, enabled=self.step.bf16):
                scores, _ = split_scores(self.network.eval())
                self._check_finite(scores(iteration.last_inputs), iteration.number)
        return {
            "outer": iteration.number + 1,
            "loss": iteration.objective / (self.m * self.table.points),  # eq. (3) or (4) a pair
            "seconds": seconds,
            "code_update_seconds": iteration.code_seconds,  # included in `seconds`
            "rows": len(self.table.rows),
            "lr": self.step.rate_used,
            "items_per_second": self.m * self.recipe.inner / seconds,
            "set_up_seconds": set_up_seconds,  # before this iteration: compiling, and cuDNN's choices
        }

    def _check_finite(self, outputs: Tensor, w: int) -> None:
        if not bool(torch.isfinite(outputs).all()):
            raise TrainingError(
                f"training diverged in outer iteration {w + 1}: the outputs are no longer finite; "
                f"lower lr, now {self.recipe.lr:g}"
            )


def batch_cuts(items: int, batch_size: int) -> list[int]:
    """Return where an epoch is cut into mini-batches; a remainder of one item joins the batch before it."""
    cuts = list(range(batch_size, items, batch_size))
    return cuts[:-1] if cuts and items - cuts[-1] == 1 else cuts


class FunctionLoader:
    """A plain function from indices to items, as a loader."""

    on_device = False

    def __init__(self, function: Callable[[Any], Tensor]) -> None:
        self._function = function

    def __call__(self, indices: Any) -> Tensor:
        """Return the items at these indices."""
        return self._function(indices)

    def epoch(self, batches: Iterable[Any]) -> Iterator[Tensor]:
        """Yield the items of each batch in turn."""
        return map(self._function, batches)


@accepts_earlier(feed="loader", slopes_of="make_gradient", resume="on_start", after_outer="on_iteration", world="group")
def learn(
    network: nn.Module,
    loader: Loader | Callable[[Any], Tensor],
    table: Table,
    recipe: Recipe,
    *,
    device: torch.device,
    **options: Any,
) -> list[Record]:
    """Train in one call: `Trainer(...).fit(...)`.

    Args:
        network: trained in place.
        loader: gives the items by index: a `DeviceLoader`, or a plain function.
        table: learned in place, a `CodeTable` for ADSH.
        recipe: the values of the run.
        device: where to train.
        **options: `seed`, `augment`, `make_gradient`, `activation` and `group` of the `Trainer`, `on_start` and
            `on_iteration` of its `fit`.

    Returns:
        One record an outer iteration.
    """
    hooks = {name: options.pop(name) for name in ("on_start", "on_iteration") if name in options}
    source = loader if isinstance(loader, Loader) else FunctionLoader(loader)
    return Trainer(network, source, table, recipe, device, **options).fit(**hooks)
