"""What the methods on features share: checks, reading, coding, the history and the clock.

A method learns the codes of its training points, then a hash function that gives such codes to any point. It says how
in two steps, `_learn_codes` and `_learn_hash`; everything around them is here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset, Items, as_items
from ..data.fingerprint import Fingerprint, fingerprint
from ..errors import InputError, NotFittedError
from ..hamming.bits import Codes, bytes_for, check_bits, pack
from ..labels import LabelSets
from ..models.parameters import constructor_parameters
from ..models.protocol import Record
from ..models.storage import check_target
from ..utils.arrays import unique_rows
from ..utils.progress import Progress
from .arrays import Indices, Signs
from .hash_function import HashFunction
from .state import save
from .validation import check_labels, check_seed, check_train

_BLOCK = 4096  # items at a time


class FeatureMethod(ABC):
    """A method to be fitted. With `whole` (the -D variants) it learns from all of Y and keeps the codes it learned."""

    name: ClassVar[str]
    needs_labels: ClassVar[bool] = True

    hash_: HashFunction
    database_hash_: HashFunction | None = None  # where the database has a hash function of its own
    database_codes_: Codes  # of all of Y
    history_: list[Record]  # one a round: outer, its number (0 for the start), loss, and the seconds it took
    seconds_: dict[str, float]  # how long learning the codes, learning the hash function and coding Y took
    input_shape_: tuple[int, ...]  # of an item
    fingerprint_: Fingerprint  # of the data of the fit
    device_ = "cpu"

    # What `models.protocol.HashModel` asks of every model
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

    def __init__(self, bits: int, *, seed: int = 0, whole: bool = False, progress: bool | str = "auto") -> None:
        self.bits, self.seed, self.whole, self.progress = bits, seed, whole, progress

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bits={self.bits}, seed={self.seed}{', whole=True' if self.whole else ''})"

    def fit(
        self,
        Y: Any,
        labels: Any = None,
        *,
        train: Any = None,
        callback: Callable[[Record], None] | None = None,
        save_to: str | Path | None = None,
    ) -> Self:
        """Learns from the items of Y at the indices `train`, by default from all, and codes all of Y.

        Items without a label are coded by the hash function. The -D variants learn from all of Y whatever `train` is.
        `callback` gets the record of each round; where it has a method `started`, that gets the facts of the run
        first. `save_to` is checked before learning starts, and written after it.
        """
        self._watchers = [Progress(self.progress), *([] if callback is None else [callback])]
        check_bits(self.bits)
        rng = np.random.default_rng(check_seed(self.seed))
        if labels is None and isinstance(Y, Dataset):
            labels = Y.labels
        items = as_items(Y, "Y")
        chosen = np.arange(len(items)) if self.whole else check_train(train, len(items))
        known = check_labels(labels, len(items), chosen, self.name) if self.needs_labels else None
        if known is not None:
            chosen = chosen[~known.empty[known.ids[chosen]]]
        self._check(len(chosen), int(np.prod(items.shape)))
        if save_to is not None:
            check_target(Path(save_to), len(items) * bytes_for(self.bits))
        self.input_shape_ = items.shape
        self.fingerprint_ = fingerprint(items, LabelSets.of(labels) if labels is not None else None)
        self._tell("started", {
            "device": self.device_, "items": "images" if len(items.shape) == 3 else "items", "points": len(items),
            "rows": len(chosen) if known is None else len(np.unique(known.ids[chosen])), "bits": self.bits, "done": 0,
            "recipe": {"outer": self._rounds(), **self.options}, "data": self.fingerprint_, "weights": None,
        })  # fmt: skip
        X = _flat(items, chosen)
        self.history_ = []
        self._started = self._before = time.perf_counter()
        signs = self._learn_codes(X, None if known is None else known.take(chosen), rng)
        learned = time.perf_counter()
        self._tell("phase", "learning the hash function")
        self.hash_ = self._learn_hash(X, signs)
        self._tell("phase", f"coding {len(items):,} items")
        fitted = time.perf_counter()
        codes = self._coded(items, self.database_hash_ or self.hash_)
        if self.whole:
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
        """`encode` of the items it was fitted on, in their order."""
        return self.encode(Y)

    def encode(self, X: Any) -> Codes:
        """(n, bytes) packed codes of any items, by the hash function."""
        return self._coded(self._new_items(X), self.hash_)

    def encode_with_features(self, X: Any) -> tuple[Codes, NDArray[np.float32] | None]:
        """Packed codes of any items, and (n, d) the items themselves as the features that the hash function reads."""
        items = self._new_items(X)
        return self._coded(items, self.hash_), _flat(items, np.arange(len(items)))

    def outputs(self, X: Any) -> NDArray[np.float32]:
        """(n, c) real-valued outputs of the hash function, of any size; their signs are the codes."""
        items = self._new_items(X)
        return self.hash_.outputs(_flat(items, np.arange(len(items)))).astype(np.float32)

    def outputs_with_features(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """The outputs, and the features as in `encode_with_features`."""
        items = self._new_items(X)
        features = _flat(items, np.arange(len(items)))
        return self.hash_.outputs(features).astype(np.float32), features

    def code_for(self, labels: Any) -> Codes:
        """Raise: a method on features has no codes for labels alone."""
        raise InputError(f"{self.name} has no codes for labels: encode the items themselves with encode()")

    @property
    def options(self) -> dict[str, Any]:
        """The constructor's arguments besides bits, `whole` and progress, by name."""
        names = set(constructor_parameters(type(self))) - {"bits", "whole", "progress"}
        return {name: getattr(self, name) for name in sorted(names)}

    @property
    def use_full_database(self) -> bool:
        """Whether it learns from all of Y and keeps the codes it learned."""
        return self.whole

    @property
    def num_distinct_codes(self) -> int:
        """How many different codes the database has."""
        return len(unique_rows(self.database_codes_)[0])

    @property
    def training_seconds(self) -> float:
        """How long learning took, without encoding the database."""
        return self.seconds_["codes"] + self.seconds_["hash function"]

    @property
    def label_names_(self) -> dict[str, tuple[Any, ...]]:
        """Nothing: a method on features keeps no label names."""
        return {}

    def _new_items(self, X: Any) -> Items:
        if not hasattr(self, "hash_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit")
        items = as_items(X, "X")
        width = int(np.prod(items.shape))
        if width != self.hash_.width:
            raise InputError(
                f"items of X have {width} values, but those of the fit had {self.hash_.width}: give the same features"
            )
        return items

    def _coded(self, items: Items, function: HashFunction) -> Codes:
        codes = np.empty((len(items), bytes_for(self.bits)), dtype=np.uint8)
        for start in range(0, len(items), _BLOCK):
            block = _flat(items, np.arange(start, min(start + _BLOCK, len(items))))
            codes[start : start + _BLOCK] = pack(function.outputs(block))
        return codes

    def save(self, folder: str | Path) -> None:
        """Writes the fitted method to a folder, which `adsh.methods.load` reads."""
        save(self, Path(folder))

    @abstractmethod
    def _learn_codes(self, X: NDArray[np.float32], labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        """(n, c) the codes of the training points X."""

    @abstractmethod
    def _learn_hash(self, X: NDArray[np.float32], codes: Signs) -> HashFunction:
        """What codes other points as X was coded."""

    @abstractmethod
    def _check(self, points: int, width: int) -> None:
        """Raises where this method cannot learn from so many points of so many features, or its options are wrong."""

    def _rounds(self) -> int:
        """How many rounds there will be."""
        return int(getattr(self, "rounds", 0))

    def _record(self, objective: float, *, start: bool = False) -> None:
        """Adds a round to the history; `start` for how things stand before the first."""
        now, outer = time.perf_counter(), 0 if start else 1
        if self.history_:
            outer = int(self.history_[-1]["outer"]) + 1
        self.history_.append({"outer": outer, "loss": float(objective), "seconds": now - self._before})
        self._before = now
        if outer:
            self._tell("__call__", self.history_[-1])

    def _tell(self, what: str, told: Any) -> None:
        """Tells those who watch, where they listen to it."""
        for watcher in self._watchers:
            if hasattr(watcher, what):
                getattr(watcher, what)(told)


def _flat(items: Items, indices: Indices) -> NDArray[np.float32]:
    """(b, d) the items as float32 features."""
    taken = items.take(indices)
    return taken.reshape(len(taken), -1).astype(np.float32, copy=False)
