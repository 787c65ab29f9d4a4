"""Algorithm 1: the network and the codes, in turn.

    n, c     database points, bits              Omega  m points sampled anew each outer iteration
    Theta    the network's parameters           U      (m, c) tanh(F(y_i; Theta)) of the sampled points
    V        the codes, held by the CodeTable   T_out, T_in   outer iterations, epochs over Omega in each

Every random choice of outer iteration w comes from (seed, w) alone. Other methods that train a network batch by batch
learn in the same loop, with a table and terms of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config import Recipe
from ..errors import InputError, TrainingError
from ..learn.code_table import CodeTable
from ..learn.objective import Terms
from ..learn.outputs import load_kernels
from ..learn.similarity import Indices
from ..networks.class_lookup import split_scores
from .deterministic import Augment, by_part
from .distributed import World
from .step import Activation, Step

Feed = Callable[[NDArray[Any] | Tensor], Tensor]
Record = dict[str, float]


class Table(Protocol):
    """What is learned beside the network: V, the CodeTable, for ADSH."""

    bits: int  # the width of an output
    points: int  # that take part
    askers: int  # of which Omega is drawn
    separate_queries: bool

    def draw(self, m: int, rng: np.random.Generator) -> Indices:
        """Omega."""

    def update(self, omega: Any, outputs: Any, gamma: float, *, signed: bool = False) -> float:
        """Learns from the outputs of Omega; the objective, over m x points pairs."""

    @property
    def rows(self) -> Sized:
        """How large it is."""

    def state(self) -> dict[str, NDArray[Any]]:
        """All that updates change."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Takes such a state."""


class Slopes(Protocol):
    """The slope of the loss for each point of Omega; `positions` are those of a batch."""

    def __getitem__(self, positions: Tensor) -> Self:
        """For some of them."""

    def __call__(self, outputs: Tensor) -> Tensor:
        """(b, c) the gradient at the outputs of these."""


SlopesOf = Callable[[Any, Indices, float, torch.device], Slopes]  # table, Omega, gamma, device

_EVALUATION_BATCH = 1024


@dataclass(frozen=True)
class Standing:
    """Where training stands between two outer iterations. Nothing else is needed to go on from there."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    table: Table
    history: list[Record]  # one record an outer iteration done
    average: nn.Module | None = None  # the network with averaged weights, where the recipe has them


def learn(
    network: nn.Module,
    feed: Feed,
    table: Table,
    recipe: Recipe,
    *,
    device: torch.device,
    seed: int = 0,
    augment: Augment | None = None,
    slopes_of: SlopesOf | None = None,
    activation: Activation = torch.tanh,
    resume: Callable[[Standing], None] | None = None,
    after_outer: Callable[[Standing], None] | None = None,
    world: World = World(),  # noqa: B008  # frozen
) -> list[Record]:
    """Trains `network` and `table` in place; one record an outer iteration.

    `slopes_of` and `activation` are those of eqs. (3) and (4) unless given. `resume` may put an earlier standing in
    place before the first iteration; `after_outer` sees each later one. The processes of `world` share the work, and
    each ends with the same network and table.
    """
    slopes: SlopesOf = slopes_of or Terms.of
    m = min(recipe.samples, table.askers)
    if m < world.size:
        raise InputError(f"{world.size} processes share {m} sampled points: start no more than {m}")
    if augment is not None and world.parts > 1:
        augment = by_part(augment, world)
    gamma = 0.0 if table.separate_queries else recipe.gamma
    cuts = _cuts(m, recipe.batch_size)
    step = Step(network, recipe, len(cuts) + 1, device, activation, world)
    history: list[Record] = []
    standing = Standing(network, step.optimizer, table, history, step.average)
    if resume:
        resume(standing)
        step.taken = len(history) * recipe.inner * step.batches
    world.start_alike(network, step.average)
    with closing(step):
        set_up = 0.0
        if device.type == "cuda":
            started = time.perf_counter()
            for size in dict.fromkeys(np.diff([0, *cuts, m]).tolist()):  # the usual one, and that of the last batch
                mine = world.share(size)
                inputs = feed(table.draw(size, np.random.default_rng(seed))[mine])
                inputs = inputs if augment is None else augment(inputs, torch.Generator(device), mine, size)
                step.prepare(inputs, len(history), size)
            if isinstance(table, CodeTable):
                load_kernels(m, table.bits, device)
            set_up = time.perf_counter() - started
        for w in range(len(history), recipe.outer):
            started = time.perf_counter()
            step.outer(w)
            rng = np.random.default_rng([seed, w])
            torch.manual_seed(int(rng.integers(1 << 62)))
            generator = torch.Generator(device).manual_seed(torch.initial_seed() >> 1)
            omega = table.draw(m, rng)
            order = rng.permutation(m)
            U = torch.empty((m, table.bits), device=device)
            terms = slopes(table, omega, gamma, device)
            code_update = 0.0
            points = torch.as_tensor(omega, device=device) if getattr(feed, "on_device", False) else omega
            for t in range(recipe.inner):
                network.train()
                placed = torch.as_tensor(order, device=device).tensor_split(cuts)  # once: no waiting between batches
                batches = placed if isinstance(points, Tensor) else np.split(order, cuts)
                shares = [points[b[world.share(len(b))]] for b in batches]
                for inputs, positions in zip(_fed(feed, shares), placed, strict=True):
                    b = len(positions)
                    if augment is not None:
                        inputs = augment(inputs, generator, world.share(b), b)
                    U[positions] = step(inputs, terms[positions], b)
                last = t == recipe.inner - 1
                if last or recipe.codes_after == "epoch":
                    if recipe.collect == "fresh":
                        shared = (omega[share] for share in world.shares(m))
                        scores, _ = split_scores(network)
                        seen = [
                            u for part in shared for u in network_outputs(scores, feed, part, activation=activation)
                        ]
                        U = world.gather(torch.cat(seen), m)
                    _check_finite(U, w, recipe)  # waits for the device
                    updating = time.perf_counter()
                    for _ in range(recipe.sweeps):
                        J = table.update(omega, U, gamma, signed=recipe.signed)
                    world.check_codes(table)
                    code_update += time.perf_counter() - updating
                    if not last:
                        terms = slopes(table, omega, gamma, device)
                if recipe.reshuffle:
                    order = rng.permutation(m)
            seconds = time.perf_counter() - started
            if w == recipe.outer - 1:  # what the last step did is in no outputs yet
                with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=step.bf16):
                    _check_finite(split_scores(network.eval())[0](inputs), w, recipe)
            history.append(
                {
                    "outer": w + 1,
                    "loss": J / (m * table.points),  # eq. (3) or (4) a pair, at the codes just updated
                    "seconds": seconds,
                    "code_update_seconds": code_update,  # of these
                    "rows": len(table.rows),
                    "lr": step.rate_used,
                    "items_per_second": m * recipe.inner / seconds,
                    "set_up_seconds": set_up,  # before this iteration: compiling, and cuDNN's choices
                }
            )
            set_up = 0.0
            if after_outer:
                after_outer(standing)
        step.finish()
    return history


def network_outputs(
    network: nn.Module,
    feed: Feed,
    indices: Indices | range,
    *,
    mirror: bool = False,
    bf16: bool = False,
    activation: Activation = torch.tanh,
) -> Iterator[Tensor]:
    """tanh(F) of the items at these indices in evaluation mode, a batch at a time.

    With `mirror`, F is the mean over an image and its mirror image, and a classifier decides by that; with `bf16`, a
    GPU computes in that.
    """
    network.eval()
    scores, decide = split_scores(network)
    size = int(getattr(network, "evaluation_batch", _EVALUATION_BATCH))  # large images come in smaller batches
    with torch.inference_mode():
        for inputs in _fed(feed, (np.asarray(indices[i : i + size]) for i in range(0, len(indices), size))):
            with torch.autocast(inputs.device.type, torch.bfloat16, enabled=bf16 and inputs.is_cuda):
                outputs = scores(inputs).float()
                if mirror and inputs.ndim == 4:
                    outputs = (outputs + scores(inputs.flip(-1)).float()) / 2
            yield activation(decide(outputs))


def _fed(feed: Feed, batches: Iterable[Any]) -> Iterator[Tensor]:
    """The inputs of each batch in turn; a feed that has `epoch` reads the next ones meanwhile."""
    epoch = getattr(feed, "epoch", None)
    return epoch(batches) if epoch else map(feed, batches)


def _cuts(m: int, batch_size: int) -> list[int]:
    """Where an epoch of m items is cut into batches; a remainder of one joins the batch before it."""
    cuts = list(range(batch_size, m, batch_size))
    return cuts[:-1] if cuts and m - cuts[-1] == 1 else cuts


def _check_finite(U: Tensor, w: int, recipe: Recipe) -> None:
    if not bool(torch.isfinite(U).all()):
        raise TrainingError(
            f"training diverged in outer iteration {w + 1}: the outputs are no longer finite; "
            f"lower lr, now {recipe.lr:g}"
        )
