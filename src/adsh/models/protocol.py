"""`HashModel`: what ADSH, the deep methods and the methods on features have in common.

Code outside `models/` and `methods/` takes a `HashModel` and reads its members; it never asks for a class. The classes
need not inherit from it: ADSH and the deep methods share `deep_hash`, the methods on features share `methods.base`.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..data.fingerprint import Fingerprint
from ..data.items import as_items
from ..hamming.bits import Codes
from ..learn.familiarity import Familiarity

Record = dict[str, float]  # of one iteration: outer, loss, seconds, …


class ItemEncoder(Protocol):
    """What searching and indexing read of a model; an exported model has it too."""

    bits: int
    input_shape_: tuple[int, ...]  # of one item

    @property
    def familiarity_(self) -> Familiarity | None:
        """How familiar an item looks, from its features; None where that is not known."""

    @property
    def has_bounded_outputs(self) -> bool:
        """Whether the outputs lie in -1 .. 1, so that asymmetric ranking can use them."""

    @property
    def codes_labels(self) -> bool:
        """Whether `code_for` gives codes to labels alone."""

    @property
    def known_labels(self) -> tuple[Hashable, ...]:
        """Every label that `code_for` knows; empty where it knows none."""

    def encode_with_features(self, X: Any) -> tuple[Codes, NDArray[np.float32] | None]:
        """Return packed codes and, from the same pass, (n, d) features; None where there is no last layer."""

    def outputs_with_features(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Return the outputs and, from the same pass, (n, d) features."""

    def code_for(self, labels: Any) -> Codes:
        """Return (n, bytes) codes for new labelled items, from labels alone. Raises where `codes_labels` is False."""


class HashModel(ItemEncoder, Protocol):
    """A model that learns a binary code for every database item, and a function that encodes any new one.

    Names that end in an underscore, and the members below them, are there after `fit` or `adsh.load`.
    """

    seed: int

    @property
    def name(self) -> str:
        """The method, without the suffix `_d`: "adsh", "itq", …"""

    @property
    def use_full_database(self) -> bool:
        """Whether this is a method's `_d` variant, which trains on the full database."""

    @property
    def network_name(self) -> str | None:
        """The network by name or class; None for a method on features."""

    @property
    def preset(self) -> str | None:
        """The preset its training values come from; None for a method on features."""

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether `fit` takes checkpoints= and resume=."""

    @property
    def caches_features(self) -> bool:
        """Whether `fit` takes features=, the file for what a frozen network computes of the items."""

    def fit(self, Y: Any, labels: Any = None, *, callback: Any = None, save_to: str | Path | None = None) -> HashModel:
        """Learn from the database Y and its labels, and encode all of Y.

        Args:
            Y: The database: features, images, or a data set with its labels.
            labels: Of the database.
            callback: A function of each record, or an `adsh.train.callbacks.Callback`.
            save_to: A folder to save to when fitted.

        Returns:
            The model itself.
        """

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder that `adsh.load` reads."""

    # After fit ----------------------------------------------------------------------------------------

    history_: list[Record]
    fingerprint_: Fingerprint  # of the training data

    @property
    def device_(self) -> object:
        """The device of the training run; `str` of it is for people."""

    @property
    def network_(self) -> Any:
        """The trained torch module; None for a method on features."""

    @property
    def hash_(self) -> Any:
        """The learned hash function of a method on features; None for a model with a network."""

    @property
    def flip_tta(self) -> bool:
        """Whether the outputs of an image and of its mirror image are averaged."""

    @property
    def database_codes_(self) -> Codes:
        """(n, bytes) packed codes of the database."""

    @property
    def num_distinct_codes(self) -> int:
        """The number of distinct codes in the database."""

    @property
    def training_seconds(self) -> float:
        """The seconds that learning took, without encoding the database."""

    @property
    def label_names_(self) -> dict[str, tuple[Any, ...]]:
        """The label names of the "database" and the "queries", where the model keeps them."""

    @property
    def frozen_features(self) -> NDArray[np.float32] | None:
        """(n, d) what a frozen network computed of the database, in the process that trained it; else None."""

    def encode(self, X: Any) -> Codes:
        """Return (n, bytes) packed codes of any items."""

    def encode_database(self, Y: Any) -> Codes:
        """Return `encode` of the items of the fit, in their order."""

    def outputs(self, X: Any) -> NDArray[np.float32]:
        """Return (n, c) real-valued outputs, whose signs are the codes."""


def familiarity_of(model: ItemEncoder, X: Any, features: NDArray[np.float32] | None) -> NDArray[np.float64] | None:
    """Return (n,) how familiar items look to a model; None where it cannot say.

    Args:
        model: fitted, or an export.
        X: the items; features are compared as they are.
        features: of images, from a pass.
    """
    if model.familiarity_ is None:
        return None
    if len(model.input_shape_) == 1:
        items = as_items(X)
        features = items.take(np.arange(len(items)))
    return None if features is None else model.familiarity_(features)
