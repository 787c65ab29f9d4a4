"""Where experiments run: the data, who asks, and what the methods see of an item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import ArrayDataset, Dataset, Split, open_source, split
from ..errors import InputError
from ..labels import LabelSets
from ..methods import DEEP, METHODS
from ..runs.inputs import draw, made_ready
from .cell import Cell
from .paper import BITS

ON_FEATURES = ("linear", "mlp")  # networks that take features; the methods without a network do as well
TWO_STEP = ("fasth", "lfh", "lfh_d", "cosdish", "cosdish_d")  # a hash function is fitted to learned codes

_PROTOCOLS = {"cifar10": "paper", "nuswide": "nuswide", "coco": "coco", "coco17": "coco17"}
MANY_LABELS = 5000  # MAP over so many, where items have several labels
_TINY = 1024  # numbers an image, which then serve as its features
_HELD_OUT = 1000  # to choose by, where the protocol has nobody for it


@dataclass(frozen=True)
class ExperimentConfig:
    """What is given once for all cells. None leaves it to the data or to the preset."""

    dataset: str
    root: str | None = None
    protocol: str | None = None
    features: str | None = None  # a .npy, for what learns from features
    network: str = "mlp"  # of ADSH and the deep methods
    weights: str | None = None  # a file it starts from
    preset: str = "modern"
    hash_function: str = "trees"  # of the methods that fit one to learned codes
    outer: int | None = None
    bits: tuple[int, ...] = BITS
    seeds: tuple[int, ...] = (0,)
    k: int | None = None
    device: str = "auto"
    methods: tuple[str, ...] = ()  # only these, where some are named
    size: int | None = None  # the side that image networks work on
    largest: int = 10**9  # points of the experiment `scale`
    alexnet: str | None = None  # a weight file of AlexNet, for the experiment `networks`
    compile: bool = False  # on a GPU: a minute at first, then shorter cells; no other cells for it

    def __post_init__(self) -> None:
        unknown = set(self.methods) - {"adsh", *METHODS}
        if unknown:
            raise InputError(f"method {unknown.pop()!r}: choose among adsh, {', '.join(METHODS)}")
        if not self.bits or not self.seeds:
            raise InputError("no code length or no seed is given: name at least one")

    def cell(self, method: str, bits: int, seed: int, points: int | None = None, **options: Any) -> Cell:
        """The cell of a method, with the config's network and preset where it has one."""
        given: dict[str, Any] = {}
        if method == "adsh" or method in DEEP:
            given = {"network": self.network, "preset": self.preset, "outer": self.outer, "weights": self.weights}
            given["size"] = self.size
        elif method in TWO_STEP:
            given = {"hash_function": self.hash_function}
        given |= options
        if given.get("network") != self.network and "weights" not in options:
            given.pop("weights", None)  # they are the common network's
        if given.get("network") in (*ON_FEATURES, "dsh_net", "tiny"):
            given.pop("size", None)
        kept = tuple((name, value) for name, value in sorted(given.items()) if value is not None)
        return Cell(method, bits, seed, kept, points)

    def cells(self, methods: tuple[str, ...], **options: Any) -> list[Cell]:
        """A cell of each method at each length with each seed: seed by seed, so that one is whole early."""
        wanted = [name for name in methods if not self.methods or name in self.methods]
        return [self.cell(name, bits, seed, **options) for seed in self.seeds for name in wanted for bits in self.bits]


def protocol_of(config: ExperimentConfig) -> str:
    """The protocol given, or the usual one of the data."""
    return config.protocol or _PROTOCOLS.get(config.dataset, "holdout")


class ExperimentData:
    """The data of a config, opened once, and the splits drawn from it."""

    def __init__(self, config: ExperimentConfig) -> None:
        self.config = config
        self.source = open_source(config.dataset, root=config.root)
        if self.source.labels is None:
            raise InputError(f"{config.dataset} has no labels: experiments compare by them")
        self.labels: LabelSets = self.source.labels
        self.protocol = protocol_of(config)
        self.several = bool((np.diff(self.labels.starts) > 1).any())
        self.k = config.k or (min(MANY_LABELS, len(self.labels)) if self.several else None)
        self._splits: dict[int, Split] = {}

    def split(self, seed: int) -> Split:
        """Who asks and who answers; the same for every method."""
        if seed not in self._splits:
            if isinstance(self.source, ArrayDataset):
                self._splits[seed] = split(self.source, self.protocol, seed)
            else:
                self._splits[seed] = draw(self._prepared, self.protocol, seed).parts
        return self._splits[seed]

    def sides(self, cell: Cell) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Who asks, the database, and what methods that sample learn from.

        To choose by, the validation items ask; a protocol without any lends some of its database.
        """
        parts = self.split(cell.seed)
        asking, database = parts.queries, parts.database
        if cell.asking == "validation":
            asking = parts.validation
            if not len(asking):
                rng = np.random.default_rng([cell.seed, 1])
                asking = np.sort(rng.choice(database, min(_HELD_OUT, len(database) // 10), replace=False))
                database = np.setdiff1d(database, asking)
        training = np.intersect1d(parts.training, database) if len(parts.training) else database
        return asking, database, training

    def seen_by(self, cell: Cell) -> Any:
        """What the method of a cell sees of the items: images, or features."""
        network = cell.option("network")
        return self._images if network is not None and network not in ON_FEATURES else self._features

    @property
    def pictures(self) -> Any:
        """The items as they can be shown, whatever a method sees of them."""
        return self._images

    @cached_property
    def _features(self) -> NDArray[np.float32]:
        path = self.config.features
        if path is None:
            if isinstance(self.source, ArrayDataset) and self.source.items[0].size <= _TINY:
                items = np.asarray(self.source.items)  # features already, or images so small that they serve as such
                scale = np.float32(1 / 255 if items.ndim == 4 else 1)
                return (items.reshape(len(items), -1) * scale).astype(np.float32)
            raise InputError(
                f"{self.config.dataset} holds images, and methods without a network of their own learn from "
                f"features: adsh features {self.config.dataset} --out features.npy, then --features features.npy"
            )
        try:
            found = np.load(Path(path).expanduser(), allow_pickle=False)
        except (OSError, ValueError) as problem:
            raise InputError(f"{path} cannot be read as features ({problem}): give a .npy of (n, d)") from None
        if not isinstance(found, np.ndarray) or found.ndim != 2 or len(found) != len(self.labels):
            shape = getattr(found, "shape", type(found).__name__)
            raise InputError(f"{path} has shape {shape}: {self.config.dataset} needs ({len(self.labels)}, d)")
        return found.astype(np.float32)

    @cached_property
    def _prepared(self) -> Any:
        network = self.config.network
        return made_ready(self.source, network=None if network in ON_FEATURES else network)

    @cached_property
    def _images(self) -> Dataset | Any:
        return self.source if isinstance(self.source, ArrayDataset) else self._prepared.dataset


@lru_cache(1)
def open_data(config: ExperimentConfig) -> ExperimentData:
    """The data of a config; opening them may take a while, and is done once."""
    return ExperimentData(config)


def at(items: Any, indices: NDArray[np.int64]) -> Any:
    """Some of the items."""
    return items.subset(indices) if isinstance(items, Dataset) else items[indices]
