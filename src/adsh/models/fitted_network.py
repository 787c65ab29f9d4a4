"""What a model does once its network is trained: encode items, compute features, report its training."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..config import Recipe
from ..data import Items, as_items
from ..data.adapt import adapt_for
from ..errors import InputError
from ..hamming.bits import Codes
from ..learn import LearnedCodes
from ..learn.familiarity import Familiarity
from ..train.state import Record
from ..utils.device import DeviceChoice
from .hub import OnHub
from .inference import capture_features, encode, outputs
from .parameters import Parameters
from .scikit import not_fitted, wrong_width

T = TypeVar("T")


class FittedNetwork(OnHub, Parameters):
    """The members of `protocol.HashModel` that ADSH and the deep methods share."""

    name: ClassVar[str]
    has_bounded_outputs: ClassVar[bool] = True
    codes_labels: ClassVar[bool] = False
    keeps_checkpoints: ClassVar[bool] = True
    hash_: ClassVar[None] = None
    use_full_database: bool = False  # of the `_d` variants

    bits: int
    network: str | nn.Module

    history_: list[Record]
    network_: nn.Module
    device_: DeviceChoice
    recipe_: Recipe
    code_table_: LearnedCodes
    input_shape_: tuple[int, ...]
    familiarity_: Familiarity | None = None  # how familiar an item looks, from its features
    features_: NDArray[np.float32]  # (n, d) of a frozen network in the process that trained it; not saved

    def encode(self, X: Any) -> Codes:
        """Return (n, bytes) packed codes of new items, by the network: u = sign(F(x))."""
        items = self._new_items(X)
        return encode(self.network_, items, self.device_.device, self.recipe_, range(len(items)))

    def encode_database(self, Y: Any) -> Codes:
        """Return `encode` of the items of the fit, in their order; the features of a frozen network are reused."""
        if self.frozen_features is None:
            return self.encode(Y)
        items = as_items(self.frozen_features)
        top = self.network_.top
        assert isinstance(top, nn.Module)
        return encode(top, items, self.device_.device, self.recipe_, range(len(items)))

    def outputs(self, X: Any) -> NDArray[np.float32]:
        """Return (n, c) the network's real-valued outputs, tanh(F(x)), in -1 .. 1."""
        items = self._new_items(X)
        batches = outputs(self.network_, items, self.device_.device, self.recipe_, range(len(items)))
        return np.concatenate([batch.cpu().numpy() for batch in batches])

    def encode_with_features(self, X: Any) -> tuple[Codes, NDArray[np.float32] | None]:
        """Return packed codes of new items and, from the same pass, (n, d) features: the input of the last layer.

        The features are None for a network without a last layer to read.
        """
        return self._with_features(self.encode, X)

    def outputs_with_features(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Return the real-valued outputs, whose signs are the codes, and the features as in `encode_with_features`."""
        return self._with_features(self.outputs, X)

    codes_and_features, outputs_and_features = encode_with_features, outputs_with_features  # their names until 0.1

    def _with_features(self, compute: Callable[[Any], T], X: Any) -> tuple[T, NDArray[np.float32] | None]:
        self._check_fitted()
        with capture_features(self.network_) as features:
            result = compute(X)
        if not features:
            return result, None
        if self.flip_tta:  # each batch, then its mirror image
            pairs = zip(features[::2], features[1::2], strict=True)
            features = [(plain + mirrored) / 2 for plain, mirrored in pairs]
        return result, torch.cat(features).numpy()

    @property
    def database_codes_(self) -> Codes:
        """(n, bytes) packed codes of the database: as learned, or by the network for points without a label."""
        self._check_fitted()
        return self.code_table_.codes()

    @property
    def network_name(self) -> str | None:
        """The network's name, or the class of a user's own module."""
        return self.network if isinstance(self.network, str) else type(self.network).__name__

    @property
    def caches_features(self) -> bool:
        """Whether `fit` takes features=: those of a frozen network, where the method supports it."""
        return False

    @property
    def flip_tta(self) -> bool:
        """Whether the outputs of an image and of its mirror image are averaged."""
        return self.recipe_.flip_tta and len(self.input_shape_) == 3

    @property
    def num_distinct_codes(self) -> int:
        """The number of distinct codes in the database."""
        self._check_fitted()
        return len(self.code_table_.count)

    @property
    def training_seconds(self) -> float:
        """The seconds that learning took, without encoding the database."""
        return sum(record["seconds"] for record in self.history_)

    @property
    def known_labels(self) -> tuple[Hashable, ...]:
        """Every label that `code_for` knows."""
        return ()

    @property
    def frozen_features(self) -> NDArray[np.float32] | None:
        """(n, d) what a frozen network computed of the database, in the process that trained it; else None."""
        return vars(self).get("features_")

    def code_for(self, labels: Any) -> Codes:
        """Raise: this method has no codes for labels alone."""
        raise InputError(f"{self.name} has no codes for labels: encode the items themselves with encode()")

    def _new_items(self, X: Any) -> Items:
        self._check_fitted()
        items = as_items(adapt_for(X, self.input_shape_, "X"), "X")
        if len(items.shape) == len(self.input_shape_) == 1 and items.shape != self.input_shape_:
            raise wrong_width(self, "X", items.shape[0], self.input_shape_[0])
        if len(items.shape) != len(self.input_shape_) or items.shape[-1] != self.input_shape_[-1]:
            raise InputError(f"items of X have shape {items.shape}, but the model was fitted on {self.input_shape_}")
        return items

    def _check_fitted(self) -> None:
        if not hasattr(self, "code_table_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet: call fit, or adsh.load a saved model")
