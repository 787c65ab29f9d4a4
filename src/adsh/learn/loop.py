"""Algorithm 1: the network and the codes, in turn.

    n, c     database points, bits              Omega  m points sampled anew each outer iteration
    Theta    the network's parameters           U      (m, c) tanh(F(y_i; Theta)) of the sampled points
    V        the codes, held by the CodeTable   T_out, T_in   outer iterations, epochs over Omega in each

Every random choice of outer iteration w comes from (seed, w) alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config import Recipe
from ..errors import InputError, TrainingError
from .code_table import CodeTable
from .objective import Terms, gradient
from .similarity import Indices

Feed = Callable[[NDArray[Any]], Tensor]
Record = dict[str, float]

_EVALUATION_BATCH = 1024


@dataclass(frozen=True)
class Standing:
    """Where training stands between two outer iterations. Nothing else is needed to go on from there."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    table: CodeTable
    history: list[Record]  # one record an outer iteration done


def learn(
    network: nn.Module,
    feed: Feed,
    table: CodeTable,
    recipe: Recipe,
    *,
    device: torch.device,
    seed: int = 0,
    resume: Callable[[Standing], None] | None = None,
    after_outer: Callable[[Standing], None] | None = None,
) -> list[Record]:
    """Trains `network` and `table` in place; one record an outer iteration.

    `resume` may put an earlier standing in place before the first iteration; `after_outer` sees each later one.
    """
    m = min(recipe.samples, table.askers)
    gamma = 0.0 if table.separate_queries else recipe.gamma
    cuts = _cuts(m, recipe.batch_size)
    step = _Step(network, recipe, len(cuts) + 1)
    history: list[Record] = []
    standing = Standing(network, step.optimizer, table, history)
    if resume:
        resume(standing)
        step.taken = len(history) * recipe.inner * step.batches
    for w in range(len(history), recipe.outer):
        started = time.perf_counter()
        rng = np.random.default_rng([seed, w])
        torch.manual_seed(int(rng.integers(1 << 62)))
        omega = table.draw(m, rng)
        order = rng.permutation(m)
        U = torch.empty((m, table.bits), device=device)
        terms = Terms.of(table, omega, gamma, device)
        for t in range(recipe.inner):
            network.train()
            for batch in np.split(order, cuts):
                positions = torch.as_tensor(batch, device=device)
                U[positions] = step(feed(omega[batch]), terms[positions])
            last = t == recipe.inner - 1
            if last or recipe.codes_after == "epoch":
                if recipe.collect == "fresh":
                    U = torch.cat(list(network_outputs(network, feed, omega)))
                _check_finite(U, w, recipe)
                J = table.update(omega, U, gamma, signed=recipe.signed)
                if not last:
                    terms = Terms.of(table, omega, gamma, device)
            if recipe.reshuffle:
                order = rng.permutation(m)
        seconds = time.perf_counter() - started
        history.append(
            {
                "outer": w + 1,
                "loss": J / (m * table.points),  # eq. (3) or (4) a pair, at the codes just updated
                "seconds": seconds,
                "rows": len(table.rows),
                "lr": step.rate_used,
                "items_per_second": m * recipe.inner / seconds,
            }
        )
        if after_outer:
            after_outer(standing)
    return history


def network_outputs(network: nn.Module, feed: Feed, indices: Indices | range) -> Iterator[Tensor]:
    """tanh(F) of the items at these indices in evaluation mode, a batch at a time."""
    network.eval()
    size = int(getattr(network, "evaluation_batch", _EVALUATION_BATCH))  # large images come in smaller batches
    with torch.inference_mode():
        for start in range(0, len(indices), size):
            batch = np.asarray(indices[start : start + size])
            yield torch.tanh(network(feed(batch)).float())


def _cuts(m: int, batch_size: int) -> list[int]:
    """Where an epoch of m items is cut into batches; a remainder of one joins the batch before it."""
    cuts = list(range(batch_size, m, batch_size))
    return cuts[:-1] if cuts and m - cuts[-1] == 1 else cuts


class _Step:
    """Learn Theta with V fixed: forward, eq. (5), backward, at the schedule's rate."""

    def __init__(self, network: nn.Module, recipe: Recipe, batches: int) -> None:
        self.network, self.recipe, self.batches = network, recipe, batches
        self.optimizer = _optimizer(network, recipe)
        self.taken = 0
        self.rate_used = 0.0

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        recipe, taken = self.recipe, self.taken
        epochs = recipe.outer * recipe.inner
        total = epochs * self.batches
        rate = recipe.lr
        if recipe.schedule == "tenth":
            rate *= 0.1 ** (taken // (self.batches * recipe.inner) // 10)
        elif recipe.schedule == "log":
            done = min(taken // self.batches, epochs - 1) / max(epochs - 1, 1)
            rate *= (recipe.lr_end / recipe.lr) ** done
        elif recipe.schedule == "cosine":
            rate = recipe.lr_end + (rate - recipe.lr_end) * (1 + math.cos(math.pi * min(taken / total, 1))) / 2
        warm = recipe.warmup * total
        return rate * min(1.0, (taken + 1) / warm) if warm else rate

    def __call__(self, inputs: Tensor, terms: Terms) -> Tensor:
        """One mini-batch; its outputs as they were before the step."""
        self.rate_used = self.rate
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate_used
        u = torch.tanh(self.network(inputs).float())
        self.optimizer.zero_grad(set_to_none=True)
        u.backward(gradient(u.detach(), terms))  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.optimizer.step()
        self.taken += 1
        return u.detach()


def _optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    parameters = [p for p in network.parameters() if p.requires_grad]
    if not parameters:
        raise InputError("the network has no parameters to train: unfreeze its last layer at least")
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=recipe.lr, weight_decay=recipe.weight_decay)
    weights = [p for p in parameters if p.ndim > 1]  # no decay for biases and norms
    others = [p for p in parameters if p.ndim <= 1]
    groups = [
        {"params": weights, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=recipe.lr)


def _check_finite(U: Tensor, w: int, recipe: Recipe) -> None:
    if not bool(torch.isfinite(U).all()):
        raise TrainingError(
            f"training diverged in outer iteration {w + 1}: the outputs are no longer finite; "
            f"lower lr, now {recipe.lr:g}"
        )
