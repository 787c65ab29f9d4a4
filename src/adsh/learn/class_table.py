"""What is learned beside a network with a posterior head: a code for each label set, none of them shared.

The network predicts the label set of an item; the codes of the label sets are far apart from the start, whatever the
network predicts. While it is trained they play no part: the loss is the cross-entropy of the label sets, each sampled
as often as the others. Afterwards each label set is given its code by `class_codes` and its votes by `class_votes`, and
the code of a query is the sign of sum_k p_k w_k v_k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from .class_codes import assign_codes, separated_codes
from .class_votes import fitted_votes, random_votes
from .code_table import CodeTable
from .rows import Rows
from .similarity import Indices


class ClassTable:
    """The table of Algorithm 1 for a network that predicts label sets.

    Args:
        learned: the codes of the database, one row a label set; `finish` sets them.
        seed: for the codes.
    """

    separate_queries = False

    def __init__(self, learned: CodeTable, seed: int) -> None:
        assert learned.label_sets is not None
        self.learned, self._seed = learned, seed
        self.sets: Indices = learned.rows.label_set  # (K,) those of points that take part
        self.bits = len(self.sets)  # the width of the network's output in training
        self.points, self.num_sampleable = learned.points, learned.num_sampleable
        self.marks = learned.marks
        self._output = np.full(learned.label_sets.set_count, -1, dtype=np.int64)  # of each label set
        self._output[self.sets] = np.arange(self.bits)
        self._ids = learned.label_sets.ids
        self._members: Indices | None = None  # all points that take part, label set by label set
        self._starts = np.concatenate([[0], np.cumsum(learned.rows.count)])

    @property
    def rows(self) -> Rows:
        """The distinct rows: one a label set."""
        return self.learned.rows

    def draw(self, m: int, rng: np.random.Generator) -> Indices:
        """Return Omega: m points, as many of one label set as of another; those of small ones come several times."""
        if self._members is None:
            order = np.argsort(self._ids, kind="stable")
            self._members = order[self._output[self._ids[order]] >= 0]
        classes = np.concatenate([rng.permutation(self.bits) for _ in range(-(-m // self.bits))])[:m]
        starts, sizes = self._starts[classes], np.diff(self._starts)[classes]
        drawn: Indices = self._members[starts + rng.integers(sizes)]
        return drawn

    def classes_of(self, omega: Any) -> Indices:
        """Return (m,) the output of each of these points' label sets."""
        classes: Indices = self._output[self._ids[np.asarray(omega)]]
        return classes

    def update(self, omega: Any, outputs: Any, gamma: float, *, signed: bool = False) -> float:
        """Return the cross-entropy, summed over m x points pairs as the loop expects; no code changes.

        Args:
            omega: (m,) the sampled points.
            outputs: (m, K) the scores of their label sets.
            gamma: not used; the loop passes it to every table.
            signed: not used either.
        """
        scores = torch.as_tensor(outputs)
        classes = torch.as_tensor(self.classes_of(omega), device=scores.device)
        return float(cross_entropy(scores, classes)) * len(classes) * self.points

    @property
    def fits_votes(self) -> bool:
        """Whether `finish` fits the votes to scores: with more classes than bits that gains nothing (decision 19)."""
        return self.bits <= self.learned.bits

    def finish(self, weights: NDArray[np.float32], scores: Tensor | None) -> NDArray[np.float32]:
        """Give every label set its code, and all of its points with it.

        Args:
            weights: (K, d) of the network's last layer, which says what label sets are alike.
            scores: (m, K) of sampled points, where `fits_votes`.

        Returns:
            (K, c) the votes, in the order of the network's outputs; their signs are the codes.
        """
        rng = np.random.default_rng(self._seed)
        codes = assign_codes(separated_codes(self.bits, self.learned.bits, rng), weights, rng)
        self.learned.set_codes(codes)
        votes = random_votes(codes, rng)
        return votes if scores is None else fitted_votes(votes, scores, self._seed)

    def warm_up(self, m: int, device: Any) -> None:
        """Do nothing: the network's step is all that runs on a GPU."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that training changes here: nothing."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Do nothing: there is no state."""

    def state_bytes(self, updates: int) -> int:
        """Return the bytes of the state."""
        return 0

    def number_bytes(self, updates: int) -> int:
        """Return an upper bound of the bytes of the row numbers."""
        return self.learned.number_bytes(0)


@dataclass(frozen=True)
class ClassGradient:
    """The gradient of the cross-entropy by the scores of a mini-batch."""

    classes: Tensor  # (m,)

    @classmethod
    def of(cls, table: ClassTable, omega: Indices, device: torch.device) -> ClassGradient:
        """Return it for the sampled points."""
        return cls(torch.as_tensor(table.classes_of(omega), device=device))

    def __getitem__(self, positions: Tensor) -> ClassGradient:
        """Return the gradient for some of the points."""
        return ClassGradient(self.classes[positions])

    def __call__(self, outputs: Tensor) -> Tensor:
        """Return (b, K) the gradient of the mean cross-entropy at these scores."""
        gradient = outputs.softmax(dim=1)
        gradient[torch.arange(len(outputs), device=outputs.device), self.classes] -= 1
        return gradient / len(outputs)
