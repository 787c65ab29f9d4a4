"""What the methods on features share: checks, reading, encoding, the history and the timing.

A method learns the codes of its training points, then a hash function that predicts them for any point: `_learn_codes`
and `_learn_hash` of its class. Everything around these two steps is here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..data import Items, as_items
from ..data.adapt import adapt_for
from ..data.fingerprint import Fingerprint, fingerprint
from ..data.items import labels_of
from ..errors import InputError
from ..hamming.bits import DEFAULT_BITS, Codes, bytes_for, check_bits, pack
from ..labels import LabelSets
from ..models.fit_inputs import labels_for
from ..models.hub import OnHub
from ..models.parameters import constructor_parameters
from ..models.protocol import Record
from ..models.scikit import ScikitEstimator, not_fitted, wrong_width
from ..models.storage import check_target
from ..train.callbacks import Callback, CallbackList
from ..utils.arrays import unique_rows
from ..utils.progress import Progress
from .arrays import Indices, Signs
from .hash_function import HashFunction
from .state import save
from .validation import check_labels, check_seed, check_train

_BLOCK = 4096  # items at a time


class FeatureMethod(OnHub, ScikitEstimator, ABC):
    """A method that learns codes of features, and a hash function that predicts them.

    Args:
        bits: Code length.
        seed: The same seed and data give the same codes.
        use_full_database: Learn from all of Y and keep the learned codes: the `_d` variants.
        whole: The older name of `use_full_database`.
        progress: "auto" shows a line on a terminal; or True or False.
        random_state: scikit-learn's name of `seed`.
    """

    renamed: ClassVar[dict[str, str]] = {"random_state": "seed", "whole": "use_full_database"}
    name: ClassVar[str]
    familiarity_: ClassVar[None] = None
    needs_labels: ClassVar[bool] = True
    rounds: int = 0  # of those whose rounds are an option

    hash_: HashFunction
    _labels: LabelSets | None = None  # of all of Y, until the method is saved and loaded
    database_hash_: HashFunction | None = None  # where the database has a hash function of its own
    database_codes_: Codes  # of all of Y
    history_: list[Record]  # of each round: outer, its number (0 for the start), loss, seconds
    seconds_: dict[str, float]  # of learning the codes, of learning the hash function, and of encoding Y
    input_shape_: tuple[int, ...]  # of an item
    fingerprint_: Fingerprint  # of the data of the fit
    device_ = "cpu"

    # What `models.protocol.HashModel` requires of every model
    has_bounded_outputs: ClassVar[bool] = False
    codes_labels: ClassVar[bool] = False
    keeps_checkpoints: ClassVar[bool] = False
    caches_features: ClassVar[bool] = False
    flip_tta: ClassVar[bool] = False
    network_: ClassVar[None] = None
    network_name: ClassVar[None] = None
    preset: ClassVar[None] = None
    frozen_features: ClassVar[None] = None
    known_labels: ClassVar[tuple[Hashable, ...]] = ()

    def __init__(
        self,
        bits: int = DEFAULT_BITS,
        *,
        seed: int = 0,
        use_full_database: bool = False,
        whole: bool | None = None,
        progress: bool | str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.bits, self.seed, self.progress = bits, seed if random_state is None else random_state, progress
        self.use_full_database = use_full_database if whole is None or use_full_database is True else whole

    def __repr__(self) -> str:
        variant = ", whole=True" if self.use_full_database else ""
        return f"{type(self).__name__}(bits={self.bits}, seed={self.seed}{variant})"

    def fit(
        self,
        Y: Any = None,
        labels: Any = None,
        *,
        X: Any = None,
        y: Any = None,
        train: Any = None,
        callback: Callback | Callable[[Record], None] | None = None,
        save_to: str | Path | None = None,
    ) -> Self:
        """Learn from items of Y, and encode all of Y.

        Args:
            Y: Features (n, d), uint8 images (n, H, W, 3), or a data set, which brings its labels along.
            labels: As for `ADSH.fit`. Items without a label are encoded by the hash function.
            X, y: scikit-learn's names of Y and labels.
            train: The indices of the items to learn from; all by default, and always for the `_d` variants.
            callback: A function of the record of each round, or an `adsh.train.callbacks.Callback`.
            save_to: A folder to save to, checked before learning starts.

        Returns:
            The method itself.
        """
        self._callbacks = CallbackList(Progress(self.progress), callback)
        check_bits(self.bits)
        rng = np.random.default_rng(check_seed(self.seed))
        Y, labels = self._given(Y, labels, X, y)
        items, labels = as_items(Y, "Y"), labels_of(Y, labels)
        chosen = np.arange(len(items)) if self.use_full_database else check_train(train, len(items))
        known = check_labels(labels, len(items), chosen, self.name) if self.needs_labels else None
        if known is not None:
            chosen = chosen[~known.empty[known.ids[chosen]]]
        self._check(len(chosen), int(np.prod(items.shape)))
        if save_to is not None:
            check_target(Path(save_to), len(items) * bytes_for(self.bits))
        self.input_shape_ = items.shape
        self._labels = known if labels is None or known is not None else labels_for(items, labels, "labels", "Y")
        self.fingerprint_ = fingerprint(items, self._labels)
        self._callbacks.on_start({
            "device": self.device_, "items": "images" if len(items.shape) == 3 else "items", "points": len(items),
            "rows": len(chosen) if known is None else len(np.unique(known.ids[chosen])), "bits": self.bits, "done": 0,
            "recipe": {"outer": self._rounds(), **self.options}, "data": self.fingerprint_, "weights": None,
        })  # fmt: skip
        features = _flat(items, chosen)
        self.history_ = []
        self._started = self._before = time.perf_counter()
        signs = self._learn_codes(features, None if known is None else known.take(chosen), rng)
        learned = time.perf_counter()
        self._callbacks.on_phase("learning the hash function")
        self.hash_ = self._learn_hash(features, signs)
        self._callbacks.on_phase(f"encoding {len(items):,} items")
        fitted = time.perf_counter()
        codes = self._encode_items(items, self.database_hash_ or self.hash_)
        if self.use_full_database:
            codes[chosen] = pack(signs)
        self.database_codes_ = codes
        self.seconds_ = {
            "codes": learned - self._started,
            "hash function": fitted - learned,
            "coding": time.perf_counter() - fitted,
        }
        if save_to is not None:
            self.save(save_to)
        return self

    def encode_database(self, Y: Any) -> Codes:
        """Return `encode` of the items of the fit, in their order."""
        return self.encode(Y)

    def encode(self, X: Any) -> Codes:
        """Return (n, bytes) packed codes of any items, by the hash function."""
        return self._encode_items(self._new_items(X), self.hash_)

    def encode_with_features(self, X: Any) -> tuple[Codes, NDArray[np.float32] | None]:
        """Return packed codes of any items, and (n, d) the items themselves as features."""
        items = self._new_items(X)
        return self._encode_items(items, self.hash_), _flat(items, np.arange(len(items)))

    def outputs(self, X: Any) -> NDArray[np.float32]:
        """Return (n, c) real-valued outputs of the hash function, unbounded; their signs are the codes."""
        items = self._new_items(X)
        return self.hash_.outputs(_flat(items, np.arange(len(items)))).astype(np.float32)

    def outputs_with_features(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Return the outputs, and the features as in `encode_with_features`."""
        items = self._new_items(X)
        features = _flat(items, np.arange(len(items)))
        return self.hash_.outputs(features).astype(np.float32), features

    def code_for(self, labels: Any) -> Codes:
        """Raise: a method on features has no codes for labels alone."""
        raise InputError(f"{self.name} has no codes for labels: encode the items themselves with encode()")

    @property
    def options(self) -> dict[str, Any]:
        """The constructor's arguments by name, without those that the saved name, bits and display stand for."""
        names = set(constructor_parameters(type(self))) - {"bits", "use_full_database", "progress", *self.renamed}
        return {name: getattr(self, name) for name in sorted(names)}

    @property
    def whole(self) -> bool:
        """The older name of `use_full_database`."""
        return self.use_full_database

    @whole.setter
    def whole(self, value: bool) -> None:
        self.use_full_database = value

    @property
    def num_distinct_codes(self) -> int:
        """The number of distinct codes in the database."""
        return len(unique_rows(self.database_codes_)[0])

    @property
    def training_seconds(self) -> float:
        """The seconds that learning took, without encoding the database."""
        return self.seconds_["codes"] + self.seconds_["hash function"]

    @property
    def label_names_(self) -> dict[str, tuple[Any, ...]]:
        """Nothing: a method on features keeps no label names."""
        return {}

    def _label_sets(self) -> LabelSets | None:
        return self._labels

    def _check_fitted(self) -> None:
        if not hasattr(self, "hash_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet: call fit")

    def _new_items(self, X: Any) -> Items:
        """Return new items, checked: they have as many features as those of the fit."""
        self._check_fitted()
        items = as_items(adapt_for(X, self.input_shape_, "X"), "X")
        width = int(np.prod(items.shape))
        if width != self.hash_.width:
            raise wrong_width(self, "X", width, self.hash_.width)
        return items

    def _encode_items(self, items: Items, function: HashFunction) -> Codes:
        codes = np.empty((len(items), bytes_for(self.bits)), dtype=np.uint8)
        for start in range(0, len(items), _BLOCK):
            block = _flat(items, np.arange(start, min(start + _BLOCK, len(items))))
            codes[start : start + _BLOCK] = pack(function.outputs(block))
        return codes

    def save(self, folder: str | Path) -> None:
        """Write the fitted method to a folder that `adsh.load` reads."""
        self._check_fitted()
        save(self, Path(folder))

    @abstractmethod
    def _learn_codes(self, X: NDArray[np.float32], labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        """Learn the codes of the training points.

        Args:
            X: (n, d) features.
            labels: Of these points; None for a method that learns without.
            rng: For all random choices.

        Returns:
            (n, c) +1/-1.
        """

    @abstractmethod
    def _learn_hash(self, X: NDArray[np.float32], codes: Signs) -> HashFunction:
        """Learn the hash function that predicts the codes of X for any point."""

    @abstractmethod
    def _check(self, points: int, width: int) -> None:
        """Raise where an option is wrong, or the method cannot learn from this many points of this width."""

    def _rounds(self) -> int:
        """Return how many rounds `_learn_codes` will record."""
        return self.rounds

    def _record(self, objective: float, *, start: bool = False) -> None:
        """Add a round to the history; `start` for the objective before the first."""
        now, outer = time.perf_counter(), 0 if start else 1
        if self.history_:
            outer = int(self.history_[-1]["outer"]) + 1
        self.history_.append({"outer": outer, "loss": float(objective), "seconds": now - self._before})
        self._before = now
        if outer:
            self._callbacks.on_iteration(self.history_[-1])


def _flat(items: Items, indices: Indices) -> NDArray[np.float32]:
    """Return (b, d) the items as float32 features."""
    taken = items.take(indices)
    return taken.reshape(len(taken), -1).astype(np.float32, copy=False)
