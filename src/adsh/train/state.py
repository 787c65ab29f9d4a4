"""What training works on between two steps: the code table, the gradient of a batch, the state to resume from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from ..learn.similarity import Indices

Record = dict[str, float]  # figures of one outer iteration
Activation = Callable[[Tensor], Tensor]  # from F(x) to the outputs: tanh for ADSH
Augment = Callable[[Tensor, Generator, slice, int], Tensor]  # images, generator, which rows of how many these are


@runtime_checkable
class Loader(Protocol):
    """Batches of items on the device: `data.loader.DeviceLoader`."""

    @property
    def on_device(self) -> bool:
        """Whether all items are on the device, so that indices are best given as tensors there."""

    def __call__(self, indices: Any) -> Tensor:
        """Return the items at these indices."""

    def epoch(self, batches: Iterable[Any]) -> Iterator[Tensor]:
        """Yield the items of each batch in turn, reading ahead."""


class Table(Protocol):
    """What is learned beside the network: V, the `CodeTable`, for ADSH."""

    bits: int  # the width of an output
    points: int  # database points that take part in learning
    num_sampleable: int  # points that Omega is drawn from
    separate_queries: bool

    def draw(self, m: int, rng: np.random.Generator) -> Indices:
        """Return Omega, m sampled points."""

    def update(self, omega: Any, outputs: Any, gamma: float, *, signed: bool = False) -> float:
        """Learn from the outputs of Omega, and return the objective over m x points pairs."""

    @property
    def rows(self) -> Sized:
        """The distinct rows."""

    def warm_up(self, m: int, device: torch.device) -> None:
        """Load on a GPU what updates from m points will run there."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that updates change."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Put such a state in place."""


class BatchGradient(Protocol):
    """The gradient of the loss for every point of Omega, of which a batch takes some by position."""

    def __getitem__(self, positions: Tensor) -> Self:
        """Return the gradient for the points at these positions."""

    def __call__(self, outputs: Tensor) -> Tensor:
        """Return the (b, c) gradient of the loss by the outputs, at these outputs."""


MakeGradient = Callable[[Any, Indices, float, torch.device], BatchGradient]  # table, Omega, gamma, device


@dataclass(frozen=True)
class TrainState:
    """All that training needs to go on after an outer iteration."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    table: Table
    history: list[Record]  # one record an outer iteration done
    average: nn.Module | None = None  # the network with averaged weights, where the recipe asks for them
