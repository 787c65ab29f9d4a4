"""The optimizer, its learning rate and averaged weights."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from ..config import Recipe
from ..errors import InputError
from ..networks.traits import traits_of

LR_FACTOR = "times"  # the key of a parameter group: how many times faster it learns


def build_optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the recipe's optimizer; the last layer has a rate of its own, and AdamW no decay of biases and norms."""
    parameters = [p for p in network.parameters() if p.requires_grad]
    if not parameters:
        raise InputError("the network has no parameters to train: unfreeze its last layer at least")
    head = traits_of(network).head
    of_head = set() if head is None else {id(p) for p in head.parameters()}
    by_options: dict[tuple[float, float], list[nn.Parameter]] = {}
    for p in parameters:
        decay = 0.0 if recipe.optimizer == "adamw" and p.ndim <= 1 else recipe.weight_decay
        by_options.setdefault((recipe.head_lr if id(p) in of_head else 1.0, decay), []).append(p)
    groups = [
        {"params": params, LR_FACTOR: factor, "weight_decay": decay} for (factor, decay), params in by_options.items()
    ]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=recipe.lr)
    return torch.optim.AdamW(groups, lr=recipe.lr, fused=True)  # also on a CPU: a step of an mlp takes two thirds


def learning_rate(recipe: Recipe, steps: int, batches: int) -> float:
    """Return the learning rate after so many steps, with `batches` steps an epoch."""
    epochs = recipe.outer * recipe.inner
    total = epochs * batches
    rate: float = recipe.lr
    if recipe.schedule == "tenth":
        iteration = steps // (batches * recipe.inner)  # from 0: the rate falls once 10, 20, … are finished
        rate *= 0.1 ** (max(iteration - 1, 0) // recipe.drop_interval)
    elif recipe.schedule == "log":
        progress = min(steps // batches, epochs - 1) / max(epochs - 1, 1)
        rate *= (recipe.lr_end / recipe.lr) ** progress
    elif recipe.schedule == "cosine":
        rate = recipe.lr_end + (rate - recipe.lr_end) * (1 + math.cos(math.pi * min(steps / total, 1))) / 2
    warmup = recipe.warmup * total
    return rate * min(1.0, (steps + 1) / warmup) if warmup else rate


class WeightAverage:
    """A copy of the network with an exponential moving average of its weights and statistics."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self._source, self._decay = network, decay
        self._tensors: tuple[tuple[list[Tensor], list[Tensor]], ...] | None = None

    @torch.no_grad()
    def update(self, steps: int) -> None:
        """Move towards the present weights; faster in the first steps, when they are far."""
        decay = min(self._decay, (1 + steps) / (10 + steps))
        if self._tensors is None:
            self._tensors = _by_kind(self.network), _by_kind(self._source)
        (means, mean_counts), (values, counts) = self._tensors
        torch._foreach_lerp_(means, values, 1 - decay)
        if counts:
            torch._foreach_copy_(mean_counts, counts)


def _by_kind(network: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """Return a network's tensors in a fixed order: those of real numbers, and the counts of batch norm."""
    tensors = list(network.state_dict().values())
    return [t for t in tensors if t.is_floating_point()], [t for t in tensors if not t.is_floating_point()]
