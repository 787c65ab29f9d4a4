"""What is configured once for all cells of an experiment: the data set, the methods and their common options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..methods import DEEP, METHODS
from ..utils.earlier_names import accepts_earlier
from .cell import Cell
from .paper import BITS

FEATURE_NETWORKS = ("linear", "mlp")  # networks that take features, as methods without a network do
TWO_STEP = (  # learn codes first, then fit a hash function to them
    "fasth", "lfh", "lfh_d", "lfh_decay", "lfh_decay_d", "cosdish", "cosdish_d",
)  # fmt: skip

_PROTOCOLS = {"cifar10": "paper", "nuswide": "nuswide", "coco": "coco", "coco17": "coco17"}
_PROTOCOLS |= dict.fromkeys(("caltech101", "cub200", "cub200_boxes"), "8-per-class")


@dataclass(frozen=True)
class ExperimentConfig:
    """Options that all cells of an experiment share; None leaves the value to the data set or to the preset.

    Attributes:
        dataset: A source: `cifar10`, `digits`, a folder, …
        root: The folder that holds the files of a named source.
        protocol: How queries and database are drawn; by default the paper's for the data set.
        features: A .npy of features, for all methods that take features.
        network: The network of ADSH and of the deep baselines.
        weights: A weight file that the network starts from.
        preset: The preset of ADSH and of the deep baselines.
        hash_function: `trees` or `ridge`, for the methods of `TWO_STEP`.
        outer: The number of outer iterations.
        bits: The code lengths.
        seeds: The seeds; each draws a split and a training.
        k: The cut-off of MAP.
        device: `auto`, `cpu`, `cuda`, …
        methods: The methods to run; empty for all.
        size: The side of the images that image networks take.
        max_points: The largest database of the experiment `scale`.
        alexnet: A weight file of AlexNet, for the experiment `networks`.
        compile: Compile networks on a GPU. It takes a minute and shortens every cell; results count as the same.
    """

    dataset: str
    root: str | None = None
    protocol: str | None = None
    features: str | None = None
    network: str = "mlp"
    weights: str | None = None
    preset: str = "modern"
    hash_function: str = "trees"
    outer: int | None = None
    bits: tuple[int, ...] = BITS
    seeds: tuple[int, ...] = (0,)
    k: int | None = None
    device: str = "auto"
    methods: tuple[str, ...] = ()
    size: int | None = None
    max_points: int = 10**9
    alexnet: str | None = None
    compile: bool = False

    def __post_init__(self) -> None:
        unknown = set(self.methods) - {"adsh", *METHODS}
        if unknown:
            raise InputError(f"method {unknown.pop()!r}: choose among adsh, {', '.join(METHODS)}")
        if not self.bits or not self.seeds:
            raise InputError("no code length or no seed is given: name at least one")

    @property
    def largest(self) -> int:
        """The earlier name of `max_points`."""
        return self.max_points

    def cell(self, method: str, bits: int, seed: int, points: int | None = None, **options: Any) -> Cell:
        """Return the cell of a method, with the configured network and preset where the method has a network.

        Args:
            method: The name of the method.
            bits: The code length.
            seed: The seed of the split and of the training.
            points: How many database items to train on; None for as many as the protocol says.
            **options: Options of the method, instead of the configured ones.

        Returns:
            The cell, its options sorted by name.
        """
        merged: dict[str, Any] = {}
        if method == "adsh" or method in DEEP:
            merged = {"network": self.network, "preset": self.preset, "outer": self.outer, "weights": self.weights}
            merged["size"] = self.size
        elif method in TWO_STEP:
            merged = {"hash_function": self.hash_function}
        merged |= options
        if merged.get("network") != self.network and "weights" not in options:
            merged.pop("weights", None)  # the configured weights are those of the configured network
        if merged.get("network") in (*FEATURE_NETWORKS, "dsh_net", "tiny"):
            merged.pop("size", None)
        present = tuple((name, value) for name, value in sorted(merged.items()) if value is not None)
        return Cell(method, bits, seed, present, points)

    def cells(self, methods: tuple[str, ...], **options: Any) -> list[Cell]:
        """Return a cell for each method, code length and seed; seed by seed, so that one is complete early."""
        names = self.select(methods)
        return [self.cell(name, bits, seed, **options) for seed in self.seeds for name in names for bits in self.bits]

    def select(self, methods: tuple[str, ...]) -> list[str]:
        """Return those of the methods that are to be run."""
        return [name for name in methods if not self.methods or name in self.methods]


ExperimentConfig.__init__ = accepts_earlier(largest="max_points")(ExperimentConfig.__init__)  # type: ignore[method-assign]  # the same signature
Setting = ExperimentConfig  # its earlier name


def protocol_of(config: ExperimentConfig) -> str:
    """Return the configured protocol, or the default of the data set."""
    return config.protocol or _PROTOCOLS.get(config.dataset, "holdout")
