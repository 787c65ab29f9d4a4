"""From items to a trained network: what `fit` of every method with a network does around Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config import Recipe
from ..data import Items, as_items
from ..data.augment import augmentation
from ..data.fingerprint import Fingerprint
from ..data.loader import DeviceLoader
from ..errors import InputError
from ..hamming.bits import Codes
from ..learn.similarity import Indices
from ..networks.frozen import Frozen
from ..train.callbacks import Callback, CallbackList
from ..train.checkpoint import Checkpoints
from ..train.distributed import ProcessGroup
from ..train.feature_cache import features_once
from ..train.loop import Trainer
from ..train.state import Activation, BatchGradient, Loader, Record, Table, TrainState
from ..utils.device import DeviceChoice, choose_device, one_thread, threads_for
from ..utils.progress import Progress
from .inference import calibrate_and_check, describe_weights, encode
from .network_state import check_target


class LearnedTable(Table, Protocol):
    """A table that says how large it may grow."""

    @property
    def marks(self) -> Fingerprint:
        """What a checkpoint compares besides the data, such as the choice of training items."""

    def number_bytes(self, updates: int) -> int:
        """Return an upper bound of the bytes of its row numbers, once that many points have been sampled."""

    def state_bytes(self, updates: int) -> int:
        """Return an upper bound of the bytes of its state, once that many points have been sampled."""


@dataclass(frozen=True)
class FitOptions:
    """How a fit reports and what it writes; the parameters of `ADSH.fit` of the same names."""

    callback: Callback | Callable[[Record], None] | None = None
    save_to: str | Path | None = None
    checkpoints: str | Path | None = None
    checkpoint_every: int | None = 1  # None for some, where training takes long
    resume: bool = False
    overwrite: bool = False
    features: str | Path | None = None


@dataclass(frozen=True)
class FitData:
    """What a fit learns from."""

    items: Items  # the database
    query_items: Items  # what Omega is drawn from: the database itself, or separate queries
    table: LearnedTable
    recipe: Recipe
    fingerprint: Fingerprint
    encode_after: Indices | None  # items that the network encodes after training; None for none
    chosen: str | None = None  # what was chosen because of the labels, and why; None for what the preset says


@dataclass(frozen=True)
class FitResult:
    """What a fit learned; the table of `FitData` is learned in place."""

    network: nn.Module
    history: list[Record]
    device: DeviceChoice
    codes: Codes | None  # of the items encoded after training
    features: NDArray[np.float32] | None  # that a frozen network computes of the database
    is_rank0: bool


class Trainable(Protocol):
    """What a fit needs of the model: see `DeepHash`, which every method with a network is."""

    bits: int
    seed: int
    device: str
    progress: bool | str
    augment: Callable[[Tensor], Tensor] | None

    def _activation(self, recipe: Recipe) -> Activation:
        """Return what makes outputs of F(x) in training."""

    def _finish(self, network: nn.Module, table: Any, loader: Loader) -> None:
        """Complete the codes once the network is trained.

        Args:
            network: What was trained, without its frozen part.
            table: What was learned together with it.
            loader: Gives what the network was trained on.
        """

    def _network(self, bits: int, shape: tuple[int, ...], recipe: Recipe, table: Any) -> nn.Module:
        """Build the network.

        Args:
            bits: The code length.
            shape: Of an item.
            recipe: The values of the training run.
            table: What is learned together with the network.

        Returns:
            The network, on the CPU.
        """

    def _make_gradient(self, table: Any, omega: Indices, gamma: float, device: torch.device) -> BatchGradient:
        """Return the gradient of the loss for the sampled points.

        Args:
            table: What is learned together with the network.
            omega: (m,) the sampled points.
            gamma: The weight of |v_i - u_i|^2.
            device: Where training runs.

        Returns:
            What computes the gradient of a batch from its outputs.
        """

    def _checkpoints(self, options: FitOptions, recipe: Recipe, data: Fingerprint) -> Checkpoints | None:
        """Open the checkpoints; None where none are requested.

        Args:
            options: Where checkpoints go, how often, and whether to resume.
            recipe: As for `_network`.
            data: The marks of the data.

        Returns:
            The store of checkpoints, or None.
        """


class Fitting:
    """One fit: prepares the network and its inputs, runs the `Trainer`, and reports.

    Args:
        model: what to fit.
        data: what to learn from.
        options: how to report, and what to write.

    Raises:
        InputError: this device or these processes cannot train it, or an item cannot be read.
    """

    def __init__(self, model: Trainable, data: FitData, options: FitOptions) -> None:
        self.model, self.data, self.options = model, data, options
        self.group = ProcessGroup.current(data.recipe.deterministic_shards)
        progress = Progress(model.progress if self.group.is_rank0 else False)
        self.callbacks = CallbackList(progress, options.callback if self.group.is_rank0 else None)
        choice = choose_device(model.device)
        self.device = replace(choice, device=self.group.device(choice.device))
        shards = data.recipe.deterministic_shards
        if shards > 1 and self.device.device.type != "cpu":
            raise InputError(f"deterministic_shards={shards} on {self.device.device}: give device cpu, or leave it out")
        problem = "the processes were given different data: every host needs the same"
        self.group.assert_equal_across_ranks(data.fingerprint, problem)
        self.checkpoints = model._checkpoints(options, data.recipe, {**data.fingerprint, **data.table.marks})
        if data.encode_after is not None:
            data.items.read_through(data.encode_after)  # report what cannot be read before training
        self._weights: str | None = None  # what the network starts from

    def run(self) -> FitResult:
        """Train, and return what was learned."""
        data, recipe, device = self.data, self.data.recipe, self.device.device
        with (
            torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
            one_thread(recipe.deterministic_shards > 1),
        ):
            torch.manual_seed(int(self.model.seed))
            network = self._network().to(device)
            trained: nn.Module = network.top if isinstance(network, Frozen) else network
            self._weights = describe_weights(network)
            self._check_space(network, trained)
            query_items, features = data.query_items, None
            if isinstance(network, Frozen):
                features = self._features(network)
                query_items = as_items(features)
            items = DeviceLoader(query_items, device)
            loader = self._prepare(trained, items)
            trainer = Trainer(
                trained, loader, data.table, recipe, device, int(self.model.seed),
                augmentation(recipe, query_items.shape, self.model.augment),
                self.model._make_gradient, self.model._activation(recipe),
                self.group,
            )  # fmt: skip
            with threads_for(trained, device), items:
                history = trainer.fit(on_start=self._on_start, on_iteration=self._on_iteration)
                self.model._finish(trained, data.table, loader)
            codes = None
            if data.encode_after is not None:
                codes = encode(network, data.items, device, recipe, data.encode_after, self.group)
        if data.query_items is not data.items:
            features = None
        return FitResult(network.eval(), history, self.device, codes, features, self.group.is_rank0)

    def _network(self) -> nn.Module:
        """Return the network to train."""
        return self.model._network(self.model.bits, self.data.items.shape, self.data.recipe, self.data.table)

    def _prepare(self, trained: nn.Module, items: DeviceLoader) -> Loader:
        """Prepare what is trained for its items, and return what loads them by the numbers that the table draws."""
        calibrate_and_check(trained, items, self.model.bits)
        return items

    def _check_space(self, network: nn.Module, trained: nn.Module) -> None:
        """Raise where the disk cannot hold what is to be written."""
        updates = self.data.recipe.outer * self.data.recipe.samples
        if not self.group.is_rank0:
            return
        if self.options.save_to is not None:
            check_target(Path(self.options.save_to), network, self.data.table.number_bytes(updates))
        if self.checkpoints is not None and self.checkpoints.every is not None:
            self.checkpoints.check_space(trained, self.data.table.state_bytes(updates))

    def _features(self, network: Frozen) -> NDArray[np.float32]:
        """Return the features that a frozen network computes of what is sampled."""
        path = None if self.options.features is None else Path(self.options.features)
        return features_once(
            network, self.data.query_items, self.device, path=path, data=self.data.fingerprint, group=self.group,
            on_done=self.callbacks.on_features,
        )  # fmt: skip

    def _on_start(self, state: TrainState) -> None:
        """Restore the last checkpoint where asked to, and report what is about to be done."""
        if self.checkpoints is not None and self.options.overwrite and self.group.is_rank0:
            self.checkpoints.clear()
        if self.checkpoints is not None and self.options.resume:
            self.checkpoints.restore(state, self.group)
        if self.group.is_rank0:
            self.callbacks.on_start(self._facts(len(state.history)))

    def _on_iteration(self, state: TrainState) -> None:
        """Report an iteration, and write a checkpoint."""
        if not self.group.is_rank0:
            return
        self.callbacks.on_iteration(state.history[-1])
        if self.checkpoints is not None:
            self.checkpoints.save(state)

    def _facts(self, done: int) -> dict[str, Any]:
        """Return what a callback is given at the start."""
        items = self.data.items
        return {
            "device": str(self.device), "items": "images" if len(items.shape) == 3 else "items", "points": len(items),
            "rows": len(self.data.table.rows), "bits": self.model.bits, "done": done,
            "recipe": self.data.recipe.saved(), "data": self.data.fingerprint, "weights": self._weights,
            "processes": self.group.size, **({} if self.data.chosen is None else {"chosen": self.data.chosen}),
        }  # fmt: skip
