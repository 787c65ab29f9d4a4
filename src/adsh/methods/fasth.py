"""`fasth`: FastHash (Lin et al., 2014): bits by block graph cuts, each fitted by boosted trees before the next.

    d_ij  the Hamming distance of the codes so far; each sampled pair has a loss of it (`margin_loss`)
    a_ij  what the pair loses where the new bit differs: at least 0 for similar pairs, at most 0 for others
    b     the new bit: min over b of the sum over pairs of a_ij [b_i != b_j]

All members of a class are similar, so with the other bits fixed theirs are a submodular problem that a minimum cut
solves exactly (`solvers.graph_cut`), and no block raises the objective. With several labels per item, the items of a
label are a block, and blocks overlap. Trees are then fitted to the bit, and the distances of the next bit are those of
the predicted bits, so that it corrects their errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import DEFAULT_BITS
from ..labels import LabelSets
from ..learn.similarity import SharedTags
from .arrays import Signs, first_occurrences, signs_of
from .hash_function import HashFunction
from .solvers.graph_cut import Integers, load_scipy, minimize_energy
from .two_step import TwoStep
from .validation import check_count

Floats = NDArray[np.float32]


class FastH(TwoStep):
    """FastHash.

    The objective of the history is the mean loss of the sampled pairs after each bit, as the trees predict it.

    Args:
        bits: Code length.
        neighbours: Similar points that are drawn for each point, and as many dissimilar ones.
        sweeps: How often each bit is optimized over all blocks.
        **shared: As of `TwoStep`.
    """

    name = "fasth"

    def __init__(self, bits: int = DEFAULT_BITS, *, neighbours: int = 100, sweeps: int = 2, **shared: Any) -> None:
        super().__init__(bits, **shared)
        self.neighbours, self.sweeps = neighbours, sweeps

    def _check(self, points: int, width: int) -> None:
        super()._check(points, width)
        check_count(self.neighbours, "neighbours")
        check_count(self.sweeps, "sweeps")
        load_scipy()

    def _learn_codes(self, X: Floats, labels: LabelSets | None, rng: np.random.Generator) -> Signs:
        assert labels is not None
        pairs = Pairs.draw(labels, self.neighbours, rng)
        blocks = [Block.of(members, pairs) for members in members_by_label(labels)]
        values = margin_loss(self.bits)  # (2, c + 1)
        distance = np.zeros(len(pairs.i), dtype=np.int64)
        self._record(self._mean(values, pairs, distance), start=True)
        fitter, functions = self._fitter(X), list[Any]()
        for _ in range(self.bits):
            kind = pairs.similar.astype(np.int64)
            a = values[kind, distance + 1] - values[kind, distance]
            bit = signs_of(rng.standard_normal(len(X), dtype=np.float32))
            for _ in range(self.sweeps):
                for block in rng.permutation(len(blocks)):
                    bit = blocks[block].cut(bit, pairs, a)
            functions.append(fitter(bit[:, None]))
            bit = signs_of(functions[-1].outputs(X))[:, 0]
            distance += bit[pairs.i] != bit[pairs.j]
            self._record(self._mean(values, pairs, distance))
        self._functions: HashFunction = type(functions[0]).concatenate(functions)
        return signs_of(self._functions.outputs(X))

    def _learn_hash(self, X: Floats, codes: Signs) -> HashFunction:
        return self._functions

    def _rounds(self) -> int:
        return self.bits

    def _mean(self, values: Integers, pairs: Pairs, distance: Integers) -> float:
        return float(values[pairs.similar.astype(np.int64), distance].mean()) / 4


@dataclass(frozen=True)
class Pairs:
    """The sampled pairs: i < j, each once."""

    i: Integers
    j: Integers
    similar: NDArray[np.bool_]

    @classmethod
    def draw(cls, labels: LabelSets, count: int, rng: np.random.Generator) -> Pairs:
        """Draw about `count` similar and `count` dissimilar points for each point, or as many as exist.

        Args:
            labels: Of the training points.
            count: How many of each kind to draw per point.
            rng: For the draws.

        Returns:
            The pairs, each once.
        """
        ids = labels.ids.astype(np.int64)
        shared, ends = SharedTags(labels, labels), list[Integers]()
        for number in first_occurrences(ids):
            members = np.flatnonzero(ids == number)
            near = shared.sum_rows(np.array([number]), np.ones((1, 1)))[:, 0][ids] > 0
            for others in (np.flatnonzero(near), np.flatnonzero(~near)):
                if len(others):
                    drawn = rng.choice(others, (len(members), min(count, len(others))))
                    ends.append(np.stack([np.broadcast_to(members[:, None], drawn.shape).ravel(), drawn.ravel()]))
        both = np.sort(np.concatenate(ends, axis=1), axis=0)
        i, j = np.divmod(np.unique(both[0] * len(ids) + both[1]), len(ids))
        i, j = i[i < j], j[i < j]
        return cls(i, j, _share(labels, shared, i, j))


def _share(labels: LabelSets, shared: SharedTags, i: Integers, j: Integers) -> NDArray[np.bool_]:
    """Return whether the two points of each pair share a label.

    Args:
        labels: Of the training points.
        shared: Which label sets share a label.
        i: The first point of each pair.
        j: The second.

    Returns:
        One value per pair.
    """
    ids = labels.ids.astype(np.int64)
    similar = np.zeros(len(i), dtype=bool)
    order = np.argsort(ids[i], kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(ids[i][order])) + 1):
        row = shared.sum_rows(ids[i[group[:1]]], np.ones((1, 1)))[:, 0]
        similar[group] = row[ids[j[group]]] > 0
    return similar


@dataclass(frozen=True)
class Block:
    """Points that are all similar to each other, with their pairs among them and with others."""

    members: Integers
    inside: Integers  # pairs among them
    left: Integers  # their ends, as positions among the members
    right: Integers
    crossing: Integers  # pairs with one of them
    member: Integers  # which it is, as a position
    other: Integers  # the point it is paired with

    @classmethod
    def of(cls, members: Integers, pairs: Pairs) -> Block:
        """Return the block of these points."""
        position = np.full(int(max(pairs.i.max(initial=0), pairs.j.max(initial=0), members.max())) + 1, -1)
        position[members] = np.arange(len(members))
        left, right = position[pairs.i], position[pairs.j]
        inside, crossing = np.flatnonzero((left >= 0) & (right >= 0)), np.flatnonzero((left >= 0) != (right >= 0))
        first = left[crossing] >= 0
        return cls(
            members,
            inside,
            left[inside],
            right[inside],
            crossing,
            np.where(first, left[crossing], right[crossing]),
            np.where(first, pairs.j[crossing], pairs.i[crossing]),
        )

    def cut(self, bit: Signs, pairs: Pairs, a: Integers) -> Signs:
        """Set the bit of the members to their best signs, with all others unchanged.

        Args:
            bit: (n,) the bit before.
            pairs: The sampled pairs.
            a: What each pair loses where the bit differs.

        Returns:
            (n,) the bit after.
        """
        h = np.bincount(self.member, a[self.crossing] * bit[self.other], len(self.members)).astype(np.int64)
        bit = bit.copy()
        bit[self.members] = minimize_energy(h, self.left, self.right, a[self.inside])
        return bit


def margin_loss(bits: int) -> Integers:
    """Return (2, c + 2) four times the loss of a dissimilar and of a similar pair at each distance, as integers.

    The loss is d^2 for a similar pair and max(0, c / 2 - d)^2 for another: squared hinges with a margin of c / 2.
    """
    d = np.arange(bits + 2, dtype=np.int64)
    return np.stack([np.maximum(bits - 2 * d, 0) ** 2, (2 * d) ** 2])


def members_by_label(labels: LabelSets) -> list[Integers]:
    """Return the points of each label; all points of a label are similar to each other."""
    ids = labels.ids.astype(np.int64)
    starts, sets = labels.holders()
    groups = [np.flatnonzero(np.isin(ids, sets[starts[t] : starts[t + 1]])) for t in range(len(starts) - 1)]
    return sorted((group for group in groups if len(group)), key=lambda group: int(group[0]))


def build(bits: int, **options: Any) -> FastH:
    """Build `fasth`."""
    return FastH(bits, **options)
