"""What every method with a network shares: the way from items to a trained network, checkpoints, coding, parameters.

ADSH is one (`estimator`), the deep methods it is compared with are others (`methods.pairwise`, `methods.classifier`).
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import config
from ..data import Items, as_items
from ..data.augment import augmentation
from ..data.fingerprint import Fingerprint
from ..data.loader import DeviceLoader
from ..errors import AdshWarning, InputError
from ..hamming.bits import Codes, check_bits
from ..labels import LabelSets
from ..learn.learned_codes import NewLabels
from ..networks import create_network, takes_center_crop
from ..networks.frozen import Frozen
from ..networks.preprocess import BILINEAR
from ..train.checkpoint import Checkpoints, found
from ..train.distributed import World
from ..train.feature_cache import features_once
from ..train.loop import Record, Slopes, Standing, Table, learn
from ..train.step import Activation
from ..utils.device import choose_device, one_thread, threads_for
from ..utils.progress import Progress, told_both
from .fitted_network import FittedNetwork
from .inference import encode, told_weights, try_out
from .network_state import check_target, save
from .parameters import Parameters

Indices = NDArray[np.int64]
T = TypeVar("T")

_OF_NAMED = {"size", "enlarge", "centre", "fixed", "head_std"}  # values of a recipe that a network is made with
_GIVEN = ("gamma", "samples", "outer", "inner", "batch_size", "lr")
_SHARED = (
    "bits", "network", "network_options", "preset", "recipe", "device", "seed", "progress", *_GIVEN,
)  # fmt: skip  # told elsewhere in a checkpoint, or of no matter to what comes out


class LearnedTable(Table, Protocol):
    """A table that says how large it may grow."""

    def number_bytes(self, updates: int) -> int:
        """At most how many bytes the row numbers of its points take, once that many have been sampled."""

    def state_bytes(self, updates: int) -> int:
        """At most how many bytes its state takes then."""


class DeepModel(FittedNetwork, Parameters, ABC):
    """A network of `bits` outputs and the codes learned with it. `fit` of the classes below says what is learned."""

    name: ClassVar[str]
    activation: ClassVar[Activation] = staticmethod(torch.tanh)
    values: ClassVar[dict[str, Any]] = {}  # of the recipe, where the method has its own

    network_options: dict[str, Any] | None
    preset: str
    outer: int | None
    inner: int | None
    samples: int | None
    batch_size: int | None
    lr: float | None
    recipe: dict[str, Any] | None
    device: str
    seed: int
    progress: bool | str

    fitted_params_: dict[str, Any]  # as they were when fit was called
    fingerprint_: Fingerprint  # of the data of the fit
    _new_labels: NewLabels | None = None  # what `code_for` needs, where the method has codes for labels

    def _train(
        self,
        items: Items,
        asked: Items,
        table: LearnedTable,
        recipe: config.Recipe,
        data: Fingerprint,
        *,
        callback: Callable[[Record], None] | None = None,
        save_to: str | Path | None = None,
        checkpoints: str | Path | None = None,
        checkpoint_every: int = 1,
        resume: bool = False,
        overwrite: bool = False,
        features: str | Path | None = None,
    ) -> None:
        """Trains a network and the table beside it, and keeps what was learned; `fit` of ADSH tells of the rest."""
        world, bits = World.now(recipe.parts), self.bits
        progress, choice = Progress(self.progress if world.first else False), choose_device(self.device)
        choice = replace(choice, device=world.device(choice.device))
        if recipe.parts > 1 and choice.device.type != "cpu":
            raise InputError(f"parts={recipe.parts} on {choice.device}: give device cpu, or leave parts out")
        world.check_alike(data, "the processes were given other data than each other: the same is needed on every host")
        marks = {**data, **getattr(table, "marks", {})}
        store = self._checkpoints(checkpoints, checkpoint_every, resume, overwrite, recipe, marks)
        later = self._coded_later(table, items)
        if later is not None:
            items.read_through(later)  # they are coded after training: what cannot be read is told before it

        devices = [choice.device] if choice.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), one_thread(recipe.parts > 1):
            torch.manual_seed(int(self.seed))
            network = self._network(bits, items.shape, recipe, table).to(choice.device)
            trained = network.top if isinstance(network, Frozen) else network
            if save_to is not None and world.first:
                check_target(Path(save_to), network, table.number_bytes(recipe.outer * recipe.samples))
            if store is not None and world.first:
                store.check_space(trained, table.state_bytes(recipe.outer * recipe.samples))
            self.__dict__.pop("features_", None)  # of an earlier fit
            if isinstance(network, Frozen):
                seen = features_once(
                    network, asked, choice, path=None if features is None else Path(features), data=data,
                    world=world, on_done=told_both(progress.features, getattr(callback, "features", None)),
                )  # fmt: skip
                if asked is items:
                    self.features_ = seen
                asked = as_items(seen)
            feed = DeviceLoader(asked, choice.device)
            try_out(trained, feed, bits, recipe.start_size)

            def at_start(standing: Standing) -> None:
                if store is not None and overwrite and world.first:
                    store.clear()
                if store is not None and resume:
                    store.restore(standing, world)
                if not world.first:
                    return
                kind = "images" if len(items.shape) == 3 else "items"
                facts = {
                    "device": str(choice), "items": kind, "points": len(items), "rows": len(table.rows), "bits": bits,
                    "done": len(standing.history), "recipe": asdict(recipe), "data": data,
                    "weights": told_weights(network), "processes": world.size,
                }  # fmt: skip
                progress.started(facts)
                tell = getattr(callback, "started", None)
                if tell:
                    tell(facts)

            def after_outer(standing: Standing) -> None:
                if not world.first:
                    return
                progress(standing.history[-1])
                if callback:
                    callback(standing.history[-1])
                if store is not None:
                    store.save(standing)

            with threads_for(trained, choice.device), feed:
                history = learn(
                    trained,
                    feed,
                    table,
                    recipe,
                    device=choice.device,
                    seed=int(self.seed),
                    augment=augmentation(recipe, asked.shape),
                    slopes_of=self._slopes_of,
                    activation=type(self).activation,
                    resume=at_start,
                    after_outer=after_outer,
                    world=world,
                )
            coded = None if later is None else encode(network, items, choice.device, recipe, later, world)

        self.network_, self.device_, self.recipe_, self.history_ = network.eval(), choice, recipe, history
        self.input_shape_, self.fitted_params_, self.fingerprint_ = items.shape, self.get_params(), data
        self._keep(table, coded)
        if save_to is not None and world.first:
            self.save(save_to)

    def save(self, folder: str | Path) -> None:
        """Writes the model into a folder, whole or not at all; an older model there is replaced."""
        self._check_fitted()
        save(self, Path(folder))

    @abstractmethod
    def fit(self, Y: Any, labels: Any = None, *, callback: Any = None, save_to: str | Path | None = None) -> Self:
        """Learn from the database Y and its labels, and encode all of Y."""

    @abstractmethod
    def _slopes_of(self, table: Any, omega: Indices, gamma: float, device: torch.device) -> Slopes:
        """The slopes of the loss for these points."""

    @abstractmethod
    def _coded_later(self, table: Any, items: Items) -> Indices | None:
        """The items that the network codes after training; None for none."""

    @abstractmethod
    def _keep(self, table: Any, coded: Codes | None) -> None:
        """Sets `code_table_` and what else is learned; `coded` are the network's codes of those items."""

    @abstractmethod
    def _restore(self, new_labels: Any, names: dict[str, Any]) -> None:
        """Takes what a saved model says of its labels."""

    @property
    @abstractmethod
    def label_names_(self) -> dict[str, tuple[Any, ...]]:
        """What the labels of each side are called; none where there were no labels."""

    # The parts of fit and encode ----------------------------------------------------------------------

    def _check_params(self) -> None:
        Progress(self.progress)
        check_bits(self.bits)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer) or not 0 <= self.seed < 1 << 63:
            raise InputError(f"seed={self.seed!r}: give a whole number of at least 0, below 2^63")

    def _recipe(self, labels: LabelSets | None, askers: int) -> config.Recipe:
        """The preset's values for this network and these labels, with those given in their place."""
        given = {name: getattr(self, name, None) for name in _GIVEN}
        given = {
            **self.values,
            **(self.recipe or {}),
            **{name: value for name, value in given.items() if value is not None},
        }
        multi = labels is not None and int(np.diff(labels.starts).max()) > 1
        spec = getattr(self.network, "adsh_spec", None)
        name = self.network if isinstance(self.network, str) else spec["name"] if spec else "module"
        recipe = config.recipe(self.preset, name, multi_label=multi, method=self.name, **given)
        if self.samples is not None and self.samples > askers:
            warnings.warn(
                f"samples={self.samples} is more than the {askers} points to sample from: all of them are taken",
                AdshWarning,
                stacklevel=4,
            )
        recipe = replace(recipe, samples=min(recipe.samples, askers))
        if "compile" not in given and recipe.outer * recipe.inner * recipe.samples < config.WORTH_COMPILING:
            recipe = replace(recipe, compile=config.RECORDED if recipe.compile else False)
        return recipe

    def _checkpoints(
        self,
        folder: str | Path | None,
        every: int,
        resume: bool,
        overwrite: bool,
        recipe: config.Recipe,
        data: Fingerprint,
    ) -> Checkpoints | None:
        if folder is None:
            if resume:
                raise InputError("resume=True without checkpoints: give the folder they are in")
            return None
        network = self.network if isinstance(self.network, str) else type(self.network).__qualname__
        chosen = {"method": self.name, "bits": self.bits, "network": network, "seed": self.seed}
        chosen |= {name: value for name, value in self.get_params().items() if name not in _SHARED}
        chosen |= {f"network {name}": value for name, value in (self.network_options or {}).items()}
        store = Checkpoints(Path(folder), every, {**chosen, **asdict(recipe)}, data)
        if not resume and not overwrite and found(store.folder):
            raise InputError(f"{folder} holds checkpoints of an earlier run: resume it, or give an empty folder")
        return store

    def _network(self, bits: int, shape: tuple[int, ...], recipe: config.Recipe, table: LearnedTable) -> nn.Module:
        if isinstance(self.network, nn.Module):
            if self.network_options:
                raise InputError("network_options go with a network's name: set them on the module itself")
            for name in sorted(_OF_NAMED & set(self.recipe or {})):
                raise InputError(f"{name} goes with a network's name: set it on the module itself")
            return copy.deepcopy(self.network)
        options: dict[str, Any] = {}
        given = self.network_options or {}
        if len(shape) == 3:
            options |= {"size": recipe.size} if recipe.size else {}
            options |= {"enlarge": recipe.enlarge} if recipe.enlarge != BILINEAR else {}
            crops = takes_center_crop(self.network) or "centre" in (self.recipe or {})
            options |= {"centre": recipe.centre} if recipe.centre < 1 and crops else {}
            # what a preset leaves as it is must have been trained before
            keep = recipe.fixed and (given.get("weights", True) is not None or "fixed" in (self.recipe or {}))
            options |= {"fixed": recipe.fixed} if keep else {}
        network = self._built(self.network, shape, {**options, **given}, table.bits)
        head = getattr(network, "head", None)
        if recipe.head_std is not None and isinstance(head, nn.Linear):
            nn.init.normal_(head.weight, std=recipe.head_std)
            nn.init.zeros_(head.bias)
        return network

    def _built(self, name: str, shape: Sequence[int], options: dict[str, Any], width: int) -> nn.Module:
        """A network by name; of outputs as wide as the table has them in training, of `bits` to code with."""
        return create_network(name, width, shape, **options)

    def _around(self, network: nn.Module, width: int) -> nn.Module:
        """A user's module as it was saved."""
        return network

    def _width(self, tensors: dict[str, Tensor]) -> int:
        """That width, of a network saved as these tensors."""
        return self.bits
