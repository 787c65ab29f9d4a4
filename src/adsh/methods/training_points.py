"""The training points of a deep method, and which of them are similar; no n x n matrix exists."""

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

_MAX_TRACKED = 2048  # sampled points whose pairs make up the objective of the history


class TrainingPoints:
    """The table of the training loop, for methods whose codes are the network's own: it has nothing to learn.

    Args:
        labels: Of all items.
        members: The indices of the training points, ascending.
        bits: How many outputs the network has in training.
        loss: `loss(table, outputs, positions)`, the mean loss of (m, c) outputs of the points at these positions.
    """

    separate_queries = False

    def __init__(
        self, labels: LabelSets, members: Indices, bits: int, loss: Callable[[TrainingPoints, Tensor, Tensor], Tensor]
    ) -> None:
        self.bits, self.members, self.items = bits, members, len(labels)
        self.points = self.num_sampleable = len(members)
        self.label_sets = labels.take(members)
        self.marks = {"training items": digest_of(members)}  # compared by checkpoints
        self.outputs = torch.zeros(0, bits)  # (n, c) the last outputs of each point, where a method keeps them
        self.classes: Tensor | None = None  # (n,) the class of each point, where a method has classes
        self._loss = loss
        self._similar: SimilarityBlocks | None = None

    @property
    def rows(self) -> NDArray[Any]:
        """The distinct label sets."""
        return np.unique(self.label_sets.ids)

    def draw(self, m: int, rng: np.random.Generator) -> Indices:
        """Draw m training points, as indices of items."""
        return self.members[rng.choice(self.points, m, replace=False)]

    def update(self, omega: Any, outputs: Any, gamma: float, *, signed: bool = False) -> float:
        """Estimate the objective over m x n pairs from those among a few sampled points; no code is updated.

        Args:
            omega: (m,) the sampled points, as indices of items.
            outputs: (m, c) their outputs.
            gamma: Not used; the loop passes it to every table.
            signed: Not used either.

        Returns:
            The objective.
        """
        positions = torch.as_tensor(np.searchsorted(self.members, omega[:_MAX_TRACKED]), device=outputs.device)
        return float(self._loss(self, outputs[:_MAX_TRACKED], positions)) * len(omega) * self.points

    def similar(self, rows: Tensor, columns: Tensor | None = None) -> Tensor:
        """Return (b, n) whether the points at `rows` share a label with those at `columns`, by default with all."""
        if self._similar is None:
            self._similar = SimilarityBlocks(self.label_sets, rows.device)
        return self._similar(rows, columns)

    def warm_up(self, m: int, device: torch.device) -> None:
        """Do nothing: the network's step is all that runs on a GPU."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what a checkpoint holds: the outputs."""
        return {"outputs": self.outputs.cpu().numpy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state of an earlier run on the same points."""
        self.outputs = torch.tensor(state["outputs"])

    def number_bytes(self, updates: int) -> int:
        """Return an upper bound of the bytes of the row numbers."""
        return 4 * self.items

    def state_bytes(self, updates: int) -> int:
        """Return an upper bound of the bytes of the state."""
        return 4 * self.points * self.bits


def digest_of(indices: Indices) -> str:
    """Return a digest of a choice of items."""
    return blake2b(np.ascontiguousarray(indices).data, digest_size=16).hexdigest()


class SimilarityBlocks:
    """Blocks of the 0/1 similarity matrix of the training points, computed on the device when they are needed."""

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
        """Return (b, n) whether each pair is similar."""
        row_ids, column_ids = self._ids[rows], self._ids if columns is None else self._ids[columns]
        if self._hot is None:
            return row_ids[:, None] == column_ids
        return (self._hot[row_ids] @ self._hot.T > 0)[:, column_ids]


@dataclass(frozen=True)
class LossGradient:
    """The gradient of a loss for a batch of training points: `gradient(outputs, positions)`."""

    gradient: Callable[[Tensor, Tensor], Tensor]
    positions: Tensor  # (b,)

    def __getitem__(self, positions: Tensor) -> LossGradient:
        return LossGradient(self.gradient, self.positions[positions])

    def __call__(self, outputs: Tensor) -> Tensor:
        """Return (b, c) the gradient at these outputs."""
        return self.gradient(outputs, self.positions)
