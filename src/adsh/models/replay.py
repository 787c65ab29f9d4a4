"""A few items of the database, kept beside a model so that an update does not forget what the others were like.

Of each label a few items are kept whose features are, on average, near those of all of its items: the first is the one
nearest to the mean, and each further one brings the mean of those chosen nearest to it (herding: Welling, 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Items
from ..errors import InputError
from ..labels import LabelSets

_MOST_BYTES = 64 << 20  # of all items together
_CANDIDATES = 5  # times the number to keep, of each label; of items that are read from files no more than are kept
_MOST_POINTS = 1 << 22  # that candidates come from

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Replay:
    """Items of the database, and where they are in it."""

    items: NDArray[Any]  # (k, …) as the trained part of the network takes them
    positions: Indices  # (k,) ascending

    def __len__(self) -> int:
        return len(self.positions)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is saved of it."""
        return {"items": self.items, "positions": self.positions}

    @classmethod
    def of(cls, arrays: dict[str, NDArray[Any]], points: int) -> Replay:
        """Return what `arrays` gave, of a database of so many points."""
        items, positions = arrays["items"], arrays["positions"]
        sorted_once = positions.ndim == 1 and (np.diff(positions) > 0).all()
        if len(items) != len(positions) or not sorted_once or (len(positions) and positions[-1] >= points):
            raise ValueError("the kept items do not fit the database")
        return cls(items, positions.astype(np.int64))


def keep_some(
    items: Items, labels: LabelSets, keep: int, features_of: Callable[[Indices], NDArray[np.float32]], seed: int
) -> Replay | None:
    """Choose so many items of each label, fewer where they would take more than 64 MiB.

    Args:
        items: the database, as the trained part of the network takes it.
        labels: of its items.
        keep: items of each label; 0 for none.
        features_of: returns the features of some items.
        seed: for the candidates.

    Returns:
        The chosen items; None for none.
    """
    if keep < 0 or isinstance(keep, bool) or not isinstance(keep, int | np.integer):
        raise InputError(f"keep={keep!r}: give the number of items of each label to keep for updates, 0 for none")
    bytes_each = int(np.prod(items.shape)) * (1 if len(items.shape) == 3 else 4)
    keep = min(int(keep), _MOST_BYTES // (bytes_each * max(len(labels.names), 1)))
    if not keep:
        return None
    candidates = keep * (_CANDIDATES if items.is_array else 1)
    rng = np.random.default_rng([seed, 11])
    holders, sets = labels.holders()
    by_set, starts = _members(labels, rng)
    chosen: set[int] = set()
    for tag in range(len(labels.names)):
        of_tag = sets[holders[tag] : holders[tag + 1]]
        members = np.concatenate([by_set[starts[k] : starts[k + 1]] for k in of_tag] or [by_set[:0]])
        if len(members) > candidates:
            members = np.sort(rng.choice(members, candidates, replace=False))
        if len(members) > keep:
            members = members[herd(features_of(members), keep)]
        chosen.update(members.tolist())
    positions = np.array(sorted(chosen), dtype=np.int64)
    return Replay(items.take(positions), positions)


def _members(labels: LabelSets, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Return points label set by label set, and (K + 1,) where each set starts; of very many points some."""
    points = np.arange(len(labels))
    if len(points) > _MOST_POINTS:
        points = np.unique(rng.integers(len(labels), size=_MOST_POINTS))
    ids = labels.ids[points]
    order = np.argsort(ids, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=labels.set_count))])
    return points[order], starts


def herd(features: NDArray[np.float32], keep: int) -> Indices:
    """Return the numbers of `keep` rows whose mean stays near the mean of all.

    Args:
        features: (n, d).
        keep: at most n.
    """
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    mean, total = unit.mean(axis=0), np.zeros(unit.shape[1])
    left = np.ones(len(unit), dtype=bool)
    chosen = np.empty(keep, dtype=np.int64)
    squares = (unit**2).sum(axis=1)
    for k in range(keep):
        expected = (k + 1) * mean - total  # what the next one should be, to keep the mean
        chosen[k] = np.argmin(np.where(left, squares - 2 * unit @ expected, np.inf))
        left[chosen[k]] = False
        total += unit[chosen[k]]
    return chosen
