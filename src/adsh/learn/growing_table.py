"""V of a database that was learned before, with new points: old codes keep every bit, and eq. (9) learns the new ones.

Each v_j has an update of its own, so holding some of them changes nothing for the others: the network's step still sees
all codes in V'V and SV (published for this objective as incremental hashing: Wu et al., DIHN, CVPR 2019).

Label sets come twice in the table, once for old points and once for new ones, so that their rows never merge. Samples
come from the points whose items are at hand; with one label an item, few of some classes and many of others, as many
of each class as there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets
from .code_table import CodeTable
from .rows import Rows
from .similarity import Indices


class GrowingTable(CodeTable):
    """The code table of an update.

    Args:
        labels: of all points, old and new.
        bits: the code length.
        sampleable: points whose items are at hand, ascending.
        unlabelled: as of `CodeTable`.
    """

    def __init__(self, labels: LabelSets, bits: int, sampleable: Indices, unlabelled: str = "network") -> None:
        super().__init__(labels, bits, unlabelled=unlabelled)
        at_hand = sampleable[self._can_be_sampled[self._query_ids[sampleable]]]
        self.num_sampleable, self._at_hand = len(at_hand), at_hand
        self._balanced = int(np.diff(labels.starts).max()) <= 1
        self._key_of_set = _keys_of_sets(labels)

    def start_from(self, rows: Rows, numbers: NDArray[np.integer[Any]], fixed_sets: int) -> None:
        """Start from codes that were learned before.

        Args:
            rows: the distinct codes; 0 where there is none yet.
            numbers: (n,) the row of each point; len(rows) where it takes no part.
            fixed_sets: the first so many label sets keep their codes.
        """
        self._rows.start_from_rows(rows.label_set, rows.codes, numbers)
        self.fixed_sets = fixed_sets

    def draw(self, m: int, rng: np.random.Generator) -> Indices:
        """Return Omega, m of the points at hand, each once."""
        if not self._balanced:
            drawn: Indices = self._at_hand[rng.choice(len(self._at_hand), m, replace=False)]
            return drawn
        shuffled = rng.permutation(self._at_hand)
        classes = self._key_of_set[self._query_ids[shuffled]]
        order = np.argsort(classes, kind="stable")
        starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
        turn = np.empty(len(order), dtype=np.int64)  # the first of each class come before the second of any
        turn[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        return rng.permutation(shuffled[np.argsort(turn, kind="stable")[:m]])


def _keys_of_sets(labels: LabelSets) -> Indices:
    """Return (K,) a number for each label set, the same for the two that have the same labels."""
    number: dict[tuple[Any, ...], int] = {}
    keys = [number.setdefault(labels.names_of(k), len(number)) for k in range(labels.set_count)]
    return np.array(keys, dtype=np.int64)
