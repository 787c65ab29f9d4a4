"""The data of an experiment: items, labels, splits, and the images or features that a method is trained on."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset, Split, open_source, split
from ..errors import InputError
from ..labels import LabelSets
from ..runs.inputs import draw_split, prepare_inputs
from .cell import Cell
from .experiment_config import FEATURE_NETWORKS, ExperimentConfig, protocol_of

MULTI_LABEL_K = 5000  # the cut-off of MAP where items have several labels

_MAP_OVER_ALL = ("coco",)  # protocols of several labels an item without a cut-off, as the authors' figures have it

_MAX_PIXELS = 1024  # values of an image that still serve as its features
_NUM_VALIDATION = 1000  # database items used for validation where the protocol has no validation set

Indices = NDArray[np.int64]


class Sides(NamedTuple):
    """Indices of the queries, of the database, and of the part of it that methods which sample are trained on."""

    queries: Indices
    database: Indices
    training: Indices


class ExperimentData:
    """The data set of an experiment, opened once, and the splits drawn from it."""

    def __init__(self, config: ExperimentConfig) -> None:
        self.config = config
        self.source = open_source(config.dataset, root=config.root)
        if self.source.labels is None:
            raise InputError(f"{config.dataset} has no labels: experiments compare by them")
        self.labels: LabelSets = self.source.labels
        self.protocol = protocol_of(config)
        self.is_multi_label = bool((np.diff(self.labels.starts) > 1).any())
        has_cutoff = self.is_multi_label and self.protocol not in _MAP_OVER_ALL
        self.k = config.k or (min(MULTI_LABEL_K, len(self.labels)) if has_cutoff else None)
        self._splits: dict[int, Split] = {}

    def split(self, seed: int) -> Split:
        """Return the split of a seed, the same for every method."""
        if seed not in self._splits:
            if self.source.array is not None:
                self._splits[seed] = split(self.source, self.protocol, seed)
            else:
                self._splits[seed] = draw_split(self._prepared, self.protocol, seed).split
        return self._splits[seed]

    def sides(self, cell: Cell) -> Sides:
        """Return the queries, database and training items of a cell.

        In a grid search the validation items are the queries; if the protocol has none, some are taken out of the
        database.
        """
        parts = self.split(cell.seed)
        queries, database = parts.queries, parts.database
        if cell.query_split == "validation":
            queries = parts.validation
            if not len(queries):
                rng = np.random.default_rng([cell.seed, 1])
                queries = np.sort(rng.choice(database, min(_NUM_VALIDATION, len(database) // 10), replace=False))
                database = np.setdiff1d(database, queries)
        training = np.intersect1d(parts.training, database) if len(parts.training) else database
        return Sides(queries, database, training)

    def inputs(self, cell: Cell) -> Any:
        """Return all items as the method of a cell takes them: images or features."""
        network = cell.option("network")
        return self.images if network is not None and network not in FEATURE_NETWORKS else self._features

    @cached_property
    def images(self) -> Dataset | Any:
        """All items as images, whatever the methods take."""
        return self.source if self.source.array is not None else self._prepared.dataset

    @cached_property
    def _features(self) -> NDArray[np.float32]:
        path = self.config.features
        if path is None:
            array = self.source.array
            if array is not None and array[0].size <= _MAX_PIXELS:
                items = np.asarray(array)  # features already, or images so small that they serve as such
                scale = np.float32(1 / 255 if items.ndim == 4 else 1)
                return (items.reshape(len(items), -1) * scale).astype(np.float32)
            raise InputError(
                f"{self.config.dataset} holds images, and methods without a network of their own learn from "
                f"features: adsh features {self.config.dataset} --out features.npy, then --features features.npy"
            )
        try:
            features = np.load(Path(path).expanduser(), allow_pickle=False)
        except (OSError, ValueError) as problem:
            raise InputError(f"{path} cannot be read as features ({problem}): give a .npy of (n, d)") from None
        if not isinstance(features, np.ndarray) or features.ndim != 2 or len(features) != len(self.labels):
            shape = getattr(features, "shape", type(features).__name__)
            raise InputError(f"{path} has shape {shape}: {self.config.dataset} needs ({len(self.labels)}, d)")
        return features.astype(np.float32)

    @cached_property
    def _prepared(self) -> Any:
        network = self.config.network
        return prepare_inputs(self.source, network=None if network in FEATURE_NETWORKS else network)


@lru_cache(1)
def open_data(config: ExperimentConfig) -> ExperimentData:
    """Return the data of an experiment; opening it may take a while, so it is opened once."""
    return ExperimentData(config)


def take(items: Any, indices: Indices) -> Any:
    """Return the items at these indices."""
    return items.subset(indices) if isinstance(items, Dataset) else items[indices]
