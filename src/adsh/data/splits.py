"""Who asks and who answers, as arrays of indices that are saved with a run."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import FolderError, InputError, first_line
from ..utils.files import replacing_file

Indices = NDArray[np.int64]

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
    training: Indices = field(
        default_factory=_none
    )  # what methods that sample learn from; in `54k` not in the database

    def arrays(self) -> dict[str, Indices]:
        """The arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("protocol", "seed")}

    def check(self, items: int) -> None:
        """Raises unless this is a split of so many items: in range, ascending, and nobody on both sides."""
        for name, part in self.arrays().items():
            if len(part) and (part.min() < 0 or part.max() >= items):
                odd = part[(part < 0) | (part >= items)][0]
                raise InputError(f"{name} of the split {self.protocol} hold {odd}, but there are {items:,} items")
            if (np.diff(part) <= 0).any():
                raise InputError(f"{name} of the split {self.protocol} are not ascending, or hold an item twice")
        held_back = np.concatenate([self.queries, self.validation])
        for name, part in (("database", self.database), ("training", self.training)):
            both = np.intersect1d(held_back, part)
            if len(both):
                raise InputError(
                    f"the split {self.protocol} has {len(both):,} items among queries or validation and {name}"
                )
        if len(np.unique(held_back)) < len(held_back):
            raise InputError(f"the split {self.protocol} has items among queries and validation both")

    def only(self, items: Indices) -> Split:
        """The split less everybody who is not among these items."""
        kept = {name: part[np.isin(part, items)] for name, part in self.arrays().items()}
        return type(self)(self.protocol, self.seed, **kept)

    def save(self, path: str | Path) -> None:
        """Writes an .npz, whole or not at all."""
        with replacing_file(Path(path)) as file:
            np.savez_compressed(file, protocol=self.protocol, seed=self.seed, **self.arrays())  # type: ignore[arg-type]  # savez takes any name

    @classmethod
    def load(cls, path: str | Path) -> Split:
        """The split that `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as held:
                arrays = {name: held[name].astype(np.int64, casting="safe") for name in _PARTS}
                return cls(str(held["protocol"]), int(held["seed"]), **arrays)
        except FileNotFoundError:
            raise FolderError(f"{path} does not exist: give the .npz of a split") from None
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
            raise FolderError(f"{path} is no split ({first_line(problem)}): draw it again") from None
