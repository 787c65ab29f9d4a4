"""`DeepHash`: what ADSH and the deep methods it is compared with share of training a network."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import config
from ..data import Items
from ..data.fingerprint import Fingerprint
from ..errors import AdshWarning, InputError
from ..hamming.bits import Codes, check_bits
from ..labels import LabelSets
from ..learn.learned_codes import NewLabels
from ..networks import create_network, takes_center_crop
from ..networks.preprocess import BILINEAR
from ..networks.traits import traits_of
from ..train.checkpoint import Checkpoints, found
from ..train.state import Activation, BatchGradient, Loader
from ..utils.progress import Progress
from ..utils.words import name_of
from .fit_inputs import images_for
from .fitted_network import FittedNetwork
from .fitting import FitData, FitOptions, Fitting, LearnedTable
from .network_state import save
from .replay import Replay
from .scikit import ScikitEstimator

Indices = NDArray[np.int64]
T = TypeVar("T")

_OF_NETWORK = {
    "size", "interpolation", "center_crop_ratio", "frozen_blocks", "head_std",
}  # fmt: skip  # values of a recipe that a network is built with
_GIVEN = ("gamma", "samples", "outer", "inner", "batch_size", "lr")
_SHARED = (
    "bits", "network", "network_options", "preset", "recipe", "device", "seed", "progress", "keep", "augment", *_GIVEN,
)  # fmt: skip  # a checkpoint has them elsewhere, or they do not change the result


class DeepHash(FittedNetwork, ScikitEstimator, ABC):
    """A network of `bits` outputs, and codes learned with it; the subclasses say by which loss."""

    name: ClassVar[str]
    activation: ClassVar[Activation] = staticmethod(torch.tanh)
    values: ClassVar[dict[str, Any]] = {}  # of the recipe, where the method has its own

    network_options: dict[str, Any] | None
    preset: str
    gamma: float | None = None  # of ADSH alone
    outer: int | None
    inner: int | None
    samples: int | None
    batch_size: int | None
    lr: float | None
    recipe: dict[str, Any] | None
    augment: Callable[[Tensor], Tensor] | None = None
    device: str
    seed: int
    progress: bool | str

    fitted_params_: dict[str, Any]  # when fit was called
    fingerprint_: Fingerprint  # of the training data
    lineage_: tuple[str, ...] = ()  # fingerprints of the models that this one was updated from, the first one first
    replay_: Replay | None = None  # items kept for updates
    _new_labels: NewLabels | None = None  # what `code_for` needs, where the method has codes for labels

    def _train(self, data: FitData, options: FitOptions) -> None:
        """Train a network and the table of codes, and keep what was learned."""
        fitting = Fitting(self, data, options)
        self.__dict__.pop("features_", None)  # of an earlier fit
        result = fitting.run()
        self.network_, self.device_, self.recipe_, self.history_ = (
            result.network, result.device, data.recipe, result.history,
        )  # fmt: skip
        if result.features is not None:
            self.features_ = result.features
        self.input_shape_, self.fitted_params_ = data.items.shape, self.get_params()
        self.fingerprint_ = data.fingerprint
        self._set_codes(data.table, result.codes)
        self._after_fit(data, result.features)
        if options.save_to is not None and result.is_rank0:
            self.save(options.save_to)

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder, whole or not at all; an older model there is replaced."""
        self._check_fitted()
        save(self, Path(folder))

    @abstractmethod
    def fit(self, Y: Any, labels: Any = None, *, callback: Any = None, save_to: str | Path | None = None) -> Self:
        """Learn from the database Y and its labels, and encode all of Y.

        Args:
            Y: The database, as for `ADSH.fit`.
            labels: Its labels, as for `ADSH.fit`.
            callback: Called at the start and after each outer iteration.
            save_to: A folder to save the model to.

        Returns:
            The model itself.
        """

    @abstractmethod
    def _make_gradient(self, table: Any, omega: Indices, gamma: float, device: torch.device) -> BatchGradient:
        """Return the gradient of the loss for the sampled points.

        Args:
            table: What is learned: a table of codes, or the training points of a baseline.
            omega: (m,) the sampled points.
            gamma: The weight of |v_i - u_i|^2, which only ADSH uses.
            device: Where training runs.

        Returns:
            What computes the gradient of a batch from its outputs.
        """

    @abstractmethod
    def _encoded_after(self, table: Any, items: Items) -> Indices | None:
        """Return the items that the network encodes after training; None for none."""

    @abstractmethod
    def _set_codes(self, table: Any, codes: Codes | None) -> None:
        """Set `code_table_` and what else is learned; `codes` are those of the items encoded after training."""

    def _after_fit(self, data: FitData, features: NDArray[np.float32] | None) -> None:
        """Complete the model with what is learned from the data once it is fitted.

        Args:
            data: What it was fitted to.
            features: What a frozen network computed of the items; None without one.
        """

    @abstractmethod
    def _restore_labels(self, new_labels: Any, names: dict[str, Any]) -> None:
        """Restore what a saved model says of its labels."""

    @property
    @abstractmethod
    def label_names_(self) -> dict[str, tuple[Any, ...]]:
        """The label names of the "database" and the "queries"; empty without labels."""

    # Steps of fit -------------------------------------------------------------------------------------

    def _images(self, source: Any) -> Any:
        """Return images that are files, or of several sizes, at the size that the network takes; else the source."""
        name = self.network if isinstance(self.network, str) else None
        size = None if name is None else config.recipe(self.preset, name).size or None
        return images_for(name, size, self.network_options or {}, source)

    def _check_params(self) -> None:
        Progress(self.progress)
        check_bits(self.bits)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer) or not 0 <= self.seed < 1 << 63:
            raise InputError(f"seed={self.seed!r}: give an integer of at least 0, below 2^63")

    def _recipe(self, labels: LabelSets | None, num_sampleable: int, fits: str = config.BITS) -> config.Recipe:
        """Return the preset's values for this network and these labels, replaced by those that were given.

        Args:
            labels: Of the database; None for a similarity matrix.
            num_sampleable: How many points Omega is drawn from.
            fits: The head that fits the labels, as for `config.recipe`.

        Returns:
            The values of the training run.
        """
        given = {name: getattr(self, name) for name in _GIVEN}
        given = {
            **self.values,
            **(self.recipe or {}),
            **{name: value for name, value in given.items() if value is not None},
        }
        multi = labels is not None and int(np.diff(labels.starts).max()) > 1
        if isinstance(self.network, str):
            name = self.network
        else:
            spec = traits_of(self.network).spec
            name = spec["name"] if spec else "module"
        recipe = config.recipe(
            self.preset, name, multi_label=multi, method=self.name, fits=fits, points=num_sampleable, **given
        )
        recipe = recipe.replace(samples=min(recipe.samples, num_sampleable))
        if "compile" not in given and recipe.outer * recipe.inner * recipe.samples < config.MIN_ITEMS_TO_COMPILE:
            recipe = recipe.replace(compile=config.CUDA_GRAPH if recipe.compile else False)
        return recipe

    def _warn_of_few(self, num_sampleable: int) -> None:
        """Warn where more samples were requested than there are points to sample."""
        if self.samples is not None and self.samples > num_sampleable:
            warnings.warn(
                f"samples={self.samples}, but only {num_sampleable} points can be sampled: all of them are taken",
                AdshWarning,
                stacklevel=4,
            )

    def _checkpoints(self, options: FitOptions, recipe: config.Recipe, data: Fingerprint) -> Checkpoints | None:
        """Open the checkpoints of this configuration and data; None where none are requested.

        Args:
            options: Where checkpoints go, how often, and whether to resume.
            recipe: The values of the training run.
            data: The marks of the data, which a checkpoint must have too.

        Returns:
            The store of checkpoints, or None.
        """
        if options.checkpoints is None:
            if options.resume:
                raise InputError("resume=True without checkpoints: give the folder they are in")
            return None
        network = self.network if isinstance(self.network, str) else type(self.network).__qualname__
        chosen = {"method": self.name, "bits": self.bits, "network": network, "seed": self.seed}
        chosen |= {name: value for name, value in self.get_params().items() if name not in _SHARED}
        chosen |= {} if self.augment is None else {"augment": name_of(self.augment)}
        chosen |= {f"network {name}": value for name, value in (self.network_options or {}).items()}
        configuration = {**chosen, **recipe.saved()}
        store = Checkpoints(Path(options.checkpoints), options.checkpoint_every, configuration, data, recipe.outer)
        if not options.resume and not options.overwrite and found(store.folder):
            raise InputError(
                f"{options.checkpoints} holds checkpoints of an earlier run: resume it, or give an empty folder"
            )
        return store

    def _network(self, bits: int, shape: tuple[int, ...], recipe: config.Recipe, table: LearnedTable) -> nn.Module:
        given_values = config.current_names(self.recipe or {})
        if isinstance(self.network, nn.Module):
            if self.network_options:
                raise InputError("network_options go with a network's name: set them on the module itself")
            for name in sorted(_OF_NETWORK & given_values):
                raise InputError(f"{name} goes with a network's name: set it on the module itself")
            return copy.deepcopy(self.network)
        options = self._head_options(recipe, table) | config.network_options(self.preset, self.network)
        given = self.network_options or {}
        if len(shape) == 3:
            options |= {"size": recipe.size} if recipe.size else {}
            options |= {"enlarge": recipe.interpolation} if recipe.interpolation != BILINEAR else {}
            crops = takes_center_crop(self.network) or "center_crop_ratio" in given_values
            options |= {"centre": recipe.center_crop_ratio} if recipe.center_crop_ratio < 1 and crops else {}
            # what a preset leaves as it is must have been trained before
            keep = recipe.frozen_blocks and (given.get("weights", True) is not None or "frozen_blocks" in given_values)
            options |= {"fixed": recipe.frozen_blocks} if keep else {}
        network = self._build_network(self.network, shape, {**options, **given}, table.bits)
        head = traits_of(network).head
        if recipe.head_std is not None and isinstance(head, nn.Linear):
            nn.init.normal_(head.weight, std=recipe.head_std)
            nn.init.normal_(head.bias, std=recipe.head_std)
        return network

    def _head_options(self, recipe: config.Recipe, table: LearnedTable) -> dict[str, Any]:
        """Return the options of the network's head: none for a head of as many outputs as the table has bits."""
        return {}

    def _activation(self, recipe: config.Recipe) -> Activation:
        """Return what makes outputs of F(x) in training."""
        return type(self).activation

    def _finish(self, network: nn.Module, table: Any, loader: Loader) -> None:
        """Complete the codes once the network is trained, before it encodes anything.

        Args:
            network: What was trained, without its frozen part.
            table: What was learned together with it.
            loader: Gives what the network was trained on.
        """

    def _build_network(self, name: str, shape: Sequence[int], options: dict[str, Any], width: int) -> nn.Module:
        """Create a network by name.

        Args:
            name: As `create_network` takes it.
            shape: Of an item.
            options: Of the network.
            width: How many outputs it has in training.

        Returns:
            The network, with new or pre-trained weights.
        """
        return create_network(name, width, shape, **options)

    def _wrap_module(self, network: nn.Module, width: int) -> nn.Module:
        """Return a user's module as the network that was saved: its tensors have the same names."""
        return network

    def _output_width(self, tensors: dict[str, Tensor]) -> int:
        """Return the width of the outputs in training, from the tensors of a saved network."""
        return self.bits
