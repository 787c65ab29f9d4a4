"""A split into queries and database, as arrays of indices that are saved with a run."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import FolderError, InputError, first_line
from ..utils.files import replacing_file
from .cache_limits import format_bytes
from .npz import Npz

Indices = NDArray[np.int64]

_UNPACKED, _RATIO = 1 << 26, 100  # bytes; distinct ascending numbers are never compressed to a hundredth
_PARTS = ("queries", "database", "validation", "training")


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
    training: Indices = field(default_factory=_none)  # for methods that sample; in `54k` not in the database

    def arrays(self) -> dict[str, Indices]:
        """Return the arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("protocol", "seed")}

    def check(self, items: int) -> None:
        """Raise unless this is a split of `items` items: in range, ascending, and no query in the database."""
        for name, part in self.arrays().items():
            if len(part) and (part.min() < 0 or part.max() >= items):
                odd = part[(part < 0) | (part >= items)][0]
                raise InputError(
                    f"{name} of the split {self.protocol} hold {odd}, but there are {items:,} items: give its own data"
                )
            if (np.diff(part) <= 0).any():
                raise InputError(
                    f"{name} of the split {self.protocol} are not ascending, or hold an item twice: draw it again"
                )
        held_out = np.concatenate([self.queries, self.validation])
        for name, part in (("database", self.database), ("training", self.training)):
            both = np.intersect1d(held_out, part)
            if len(both):
                raise InputError(
                    f"the split {self.protocol} has {len(both):,} items in both {name} and queries or validation: "
                    "draw it again"
                )
        if len(np.unique(held_out)) < len(held_out):
            raise InputError(f"the split {self.protocol} has items in both queries and validation: draw it again")

    def only(self, items: Indices) -> Split:
        """Return the split without the items that are not among these."""
        remaining = {name: part[np.isin(part, items)] for name, part in self.arrays().items()}
        return type(self)(self.protocol, self.seed, **remaining)

    def save(self, path: str | Path) -> None:
        """Write an .npz, completely or not at all."""
        with replacing_file(Path(path)) as file:
            np.savez_compressed(file, protocol=self.protocol, seed=self.seed, **self.arrays())  # type: ignore[arg-type]  # savez takes any name

    @classmethod
    def load(cls, path: str | Path) -> Split:
        """Read what `save` wrote."""
        try:
            file = Npz(Path(path))
            if file.unpacked > max(_UNPACKED, _RATIO * Path(path).stat().st_size):
                raise ValueError(f"it unpacks to {format_bytes(file.unpacked)}, more than any split does")
            arrays = {name: file[name].astype(np.int64, casting="safe") for name in _PARTS}
            return cls(str(file["protocol"]), int(file["seed"]), **arrays)
        except (OSError, ValueError, KeyError, TypeError) as problem:
            if not Path(path).exists():
                raise FolderError(f"{path} does not exist: give the .npz of a split") from None
            raise FolderError(f"{path} is no split ({first_line(problem)}): draw it again") from None
