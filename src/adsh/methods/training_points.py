"""The points a network learns from, batch by batch, and who of them is similar to whom: no matrix of n x n exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..labels import LabelSets
from .arrays import Indices, tags_of_sets

_WATCHED = 2048  # sampled points at most whose pairs make up the objective of the history


class TrainingPoints:
    """What the training loop asks of a table, for methods whose codes are the network's own.

    `loss(self, outputs, positions)` is the mean loss of the outputs (m, c) of the points at these positions.
    """

    separate_queries = False

    def __init__(
        self, labels: LabelSets, members: Indices, bits: int, loss: Callable[[TrainingPoints, Tensor, Tensor], Tensor]
    ) -> None:
        self.bits, self.members, self.items = bits, members, len(labels)
        self.points = self.num_sampleable = len(members)
        self.label_sets = labels.take(members)
        self.marks = {"training items": of_items(members)}  # of the run, for its checkpoints
        self.outputs = torch.zeros(0, bits)  # (n, c) as last seen, where a method keeps them
        self.classes: Tensor | None = None  # (n,) a number for each label set, where a method tells them apart
        self._loss = loss
        self._similar: Similar | None = None

    @property
    def rows(self) -> NDArray[Any]:
        """The distinct label sets."""
        return np.unique(self.label_sets.ids)

    def draw(self, m: int, rng: np.random.Generator) -> Indices:
        """Some of the training points, as indices of items."""
        return self.members[rng.choice(self.points, m, replace=False)]

    def update(self, omega: Any, outputs: Any, gamma: float, *, signed: bool = False) -> float:
        """The objective over m x n pairs, from the pairs among some of the sampled points; nothing is learned here."""
        some = torch.as_tensor(np.searchsorted(self.members, omega[:_WATCHED]), device=outputs.device)
        return float(self._loss(self, outputs[:_WATCHED], some)) * len(omega) * self.points

    def similar(self, rows: Tensor, columns: Tensor | None = None) -> Tensor:
        """(b, n) of bool: whether the points at these positions share a label with those, by default with all."""
        if self._similar is None:
            self._similar = Similar(self.label_sets, rows.device)
        return self._similar(rows, columns)

    def state(self) -> dict[str, NDArray[Any]]:
        """The outputs that are kept."""
        return {"outputs": self.outputs.cpu().numpy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Takes the state of another run on the same points."""
        self.outputs = torch.tensor(state["outputs"])

    def number_bytes(self, updates: int) -> int:
        """At most so many bytes for the row numbers of all items."""
        return 4 * self.items

    def state_bytes(self, updates: int) -> int:
        """At most so many bytes."""
        return 4 * self.points * self.bits


def of_items(indices: Indices) -> str:
    """A short name for a choice of items."""
    return blake2b(np.ascontiguousarray(indices).data, digest_size=16).hexdigest()


class Similar:
    """Blocks of the 0/1 matrix of similar training points, made where and when they are needed."""

    def __init__(self, labels: LabelSets, device: torch.device) -> None:
        sets = np.diff(labels.starts)
        ids = labels.ids.astype(np.int64)
        self._hot: Tensor | None = None
        if sets[np.unique(ids)].max() == 1:
            self._ids = torch.as_tensor(labels.tags[labels.starts[ids]], device=device)
        else:
            self._ids = torch.as_tensor(ids, device=device)
            self._hot = torch.as_tensor(tags_of_sets(labels), dtype=torch.float32, device=device)  # (K, L)

    def __call__(self, rows: Tensor, columns: Tensor | None = None) -> Tensor:
        """(b, n) of bool."""
        asking, answering = self._ids[rows], self._ids if columns is None else self._ids[columns]
        if self._hot is None:
            return asking[:, None] == answering
        return (self._hot[asking] @ self._hot.T > 0)[:, answering]


@dataclass(frozen=True)
class LossGradient:
    """The slope of a loss for a batch of training points: `gradient(outputs, positions)`."""

    gradient: Callable[[Tensor, Tensor], Tensor]
    positions: Tensor  # (b,)

    def __getitem__(self, positions: Tensor) -> LossGradient:
        return LossGradient(self.gradient, self.positions[positions])

    def __call__(self, outputs: Tensor) -> Tensor:
        """(b, c) the gradient at these outputs."""
        return self.gradient(outputs, self.positions)
