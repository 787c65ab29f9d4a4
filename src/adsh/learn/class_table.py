"""What is learned beside a network with a posterior head: a code for each label set, none of them shared.

The network predicts the label set of an item. While it is trained codes play no part: the loss is the cross-entropy of
the label sets. With one label an item each class is sampled as often as the others, with several labels items are
sampled as they are. Afterwards each label set is given its code and its votes by `class_codes` and `class_votes`, and
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

from .class_codes import Signs, assign_codes, separated_codes
from .class_votes import MOST, Goal, Votes, distinct_votes, learned_votes, random_votes
from .code_table import CodeTable
from .rows import Rows
from .similarity import Indices, ragged

_START = 0.5  # standard deviation of a label's part of v before tanh
_ONE = {"database": 0.0, "softer": 1.5}  # of a `Goal`, for one label an item: decision 20
_CONTRAST, _LARGEST_CONTRAST = 1.75, 6.0  # for each ln K, and at most
_SEVERAL = {"contrast": 3.0, "database": 0.75, "softer": 1.0}  # for several labels an item
_STARTS = 4  # tried for several labels, of which the one of the smallest loss is kept


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
        self._known: Votes | None = None  # of an earlier fit
        self.sets: Indices = learned.rows.label_set  # (K,) those of points that take part
        self.bits = len(self.sets)  # the width of the network's output in training
        self.points, self.num_sampleable = learned.points, learned.num_sampleable
        self.marks = learned.marks
        self._output = np.full(learned.label_sets.set_count, -1, dtype=np.int64)  # of each label set
        self._output[self.sets] = np.arange(self.bits)
        self._ids = learned.label_sets.ids
        self._points: Indices | None = None  # all that can be sampled, label set by label set
        self._starts = np.concatenate([[0], np.cumsum(learned.rows.count)])

    @property
    def several_labels(self) -> bool:
        """Whether some points have several labels."""
        assert self.learned.label_sets is not None
        return int(np.diff(self.learned.label_sets.starts).max()) > 1

    def members(self) -> NDArray[np.float32]:
        """Return (K, L) 1 where a label set has a label."""
        label_sets = self.learned.label_sets
        assert label_sets is not None
        members = np.zeros((len(self.sets), len(label_sets.names)), dtype=np.float32)
        members[ragged(self.sets, label_sets.starts, label_sets.tags)] = 1.0
        return members

    @property
    def rows(self) -> Rows:
        """The distinct rows: one a label set."""
        return self.learned.rows

    def draw(self, m: int, rng: np.random.Generator) -> Indices:
        """Return Omega: m points, with one label each as many of one as of another: rare ones come several times."""
        if self.several_labels:
            return self.learned.draw(m, rng)
        if self._points is None:
            order = np.argsort(self._ids, kind="stable")
            self._points = order[self._output[self._ids[order]] >= 0]
        present = np.flatnonzero(np.diff(self._starts))
        classes = np.concatenate([rng.permutation(len(present)) for _ in range(-(-m // len(present)))])[:m]
        classes = present[classes]
        starts, sizes = self._starts[classes], np.diff(self._starts)[classes]
        drawn: Indices = self._points[starts + rng.integers(sizes)]
        return drawn

    def keep_votes(self, votes: Votes) -> None:
        """Keep codes of an earlier fit.

        Args:
            votes: (K, c), 0 for label sets whose codes are to be learned.
        """
        self._known = votes

    def sample_among(self, points: Indices) -> None:
        """Draw samples from these points alone, which are those that the table of codes samples."""
        self.num_sampleable = self.learned.num_sampleable
        outputs = self._output[self._ids[points]]
        order = np.argsort(outputs, kind="stable")
        self._points = points[order[outputs[order] >= 0]]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(outputs[outputs >= 0], minlength=self.bits))])

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
    def learns_votes(self) -> bool:
        """Whether `finish` learns the codes from scores; for very many classes random weights do as well."""
        return self.bits <= MOST

    def finish(self, weights: NDArray[np.float32], scores: Tensor | None) -> Votes:
        """Give every label set its code, and all of its points with it.

        Args:
            weights: (K, d) of the network's last layer, which says what label sets are alike.
            scores: (m, K) of sampled points, where `learns_votes`.

        Returns:
            (K, c) the votes, in the order of the network's outputs; their signs are the codes.
        """
        rng = np.random.default_rng(self._seed)
        count = self.rows.count if self.several_labels else np.ones(self.bits, dtype=np.int64)
        if self._known is not None:
            votes = self._votes_next_to(self._known, scores, count, rng)
        elif scores is None:
            votes = random_votes(self._separated(weights, rng), rng)
        elif self.several_labels:
            votes = self._best_votes([self._random_start(rng) for _ in range(_STARTS)], scores, count)
        else:
            few = self.bits <= self.learned.bits
            start = self._random_start(rng) if few else self._separated(weights, rng).astype(np.float32)
            votes = distinct_votes(self._best_votes([start], scores, count))
        self.learned.set_codes(np.where(votes < 0, -1, 1).astype(np.int8), count)
        return votes

    def _best_votes(
        self, starts: list[Votes], scores: Tensor, count: Indices, known: NDArray[np.bool_] | None = None
    ) -> Votes:
        """Learn votes from each start, and return those of the smallest loss.

        Args:
            starts: (K, c) each.
            scores: (m, K) of sampled points.
            count: (K,) what each label set counts for.
            known: (K,) label sets that keep their votes.
        """
        contrast = min(_LARGEST_CONTRAST, _CONTRAST * np.log(max(2, self.bits)))
        goal = self._goal(count, _SEVERAL if self.several_labels else _ONE | {"contrast": float(contrast)})
        tried = [learned_votes(start, scores, goal, self._seed, known) for start in starts]
        return min(tried, key=lambda found: found[1])[0]

    def _votes_next_to(self, known: Votes, scores: Tensor | None, count: Indices, rng: np.random.Generator) -> Votes:
        """Return votes of which the known ones keep their signs.

        Args:
            known: (K, c), 0 for label sets without a code.
            scores: (m, K) of sampled points, where `learns_votes`.
            count: (K,) what each label set counts for.
            rng: for the new ones.
        """
        keeps: NDArray[np.bool_] = np.any(known, axis=1)
        if keeps.all():
            return known
        starts = [np.where(keeps[:, None], known, self._random_start(rng)) for _ in range(_STARTS)]
        votes = starts[0] if scores is None else self._best_votes(starts, scores, count, keeps)
        return votes if self.several_labels else distinct_votes(votes, keeps)

    def _goal(self, count: Indices, values: dict[str, float]) -> Goal:
        members = torch.as_tensor(self.members())
        similar = (members @ members.T > 0).float()
        return Goal(similar, torch.as_tensor(count, dtype=torch.float32), **values)

    def _separated(self, weights: NDArray[np.float32], rng: np.random.Generator) -> Signs:
        """Return (K, c) codes far apart, near for similar classes."""
        return assign_codes(separated_codes(self.bits, self.learned.bits, rng), weights, rng)

    def _random_start(self, rng: np.random.Generator) -> Votes:
        """Return (K, c) sums of random vectors of the labels, which are nearer for label sets that share some."""
        members = self.members()
        start: Votes = members @ (_START * rng.standard_normal((members.shape[1], self.learned.bits))).astype(
            np.float32
        )
        return start

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
