"""Who asks and who answers: splits drawn from a seed, as arrays of indices that are saved with the run."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .dataset import Dataset

Indices = NDArray[np.int64]

_HELD_OUT, _AT_MOST = 0.1, 1000  # of the protocol `holdout`


def _none() -> Indices:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Split:
    """Indices into a dataset, each ascending. Queries and validation items are never in the database."""

    protocol: str
    seed: int
    queries: Indices = field(default_factory=_none)
    database: Indices = field(default_factory=_none)
    validation: Indices = field(default_factory=_none)
    training: Indices = field(default_factory=_none)  # of the database: what the methods that sample learn from

    def arrays(self) -> dict[str, Indices]:
        """The arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("protocol", "seed")}


def split(dataset: Dataset, protocol: str = "holdout", seed: int = 0) -> Split:
    """The split of that name, drawn from the seed.

    holdout   a tenth of the items, at most 1,000, ask; the others are the database
    all       every item is in the database, and nobody asks
    """
    n = len(dataset)
    if protocol == "all":
        return Split(protocol, seed, database=np.arange(n))
    if protocol == "holdout":
        count = min(max(1, round(n * _HELD_OUT)), _AT_MOST)
        order = np.random.default_rng(seed).permutation(n)
        return Split(protocol, seed, queries=np.sort(order[:count]), database=np.sort(order[count:]))
    raise InputError(f"protocol={protocol!r}: choose holdout or all")
