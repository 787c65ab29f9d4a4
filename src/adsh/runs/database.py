"""The items of a run's database by key, and the sources that they came from.

items.npz    keys        of the database items, in their order
             source      (n,) 0 for the source of training, k for that of update k
             at          (n,) the item's index in its source as opened
             left_out    keys of the first source that are not in the database, such as those of queries
             first_K     (m,) the items that source K gave, as indices into it: what its fingerprint is of
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset, Split
from ..data.npz import Npz
from ..errors import FolderError, InputError
from ..labels import smallest_unsigned
from ..models.storage_format import ITEMS
from ..utils.files import find_file, replacing_file

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class RunItems:
    """The database items of a run; an update keeps those that stay, in their order, and adds new ones at the end."""

    keys: Sequence[str]
    source: Indices
    at: Indices
    first: dict[int, Indices]
    left_out: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of_split(cls, dataset: Dataset, split: Split) -> RunItems:
        """Return the items that a first training takes from its source."""
        at = split.database
        others = np.concatenate([split.queries, split.validation])
        keys = dataset.keys
        return cls(
            [keys[i] for i in at.tolist()],
            np.zeros(len(at), dtype=np.int64),
            at,
            {0: at},
            frozenset(keys[i] for i in others.tolist()),
        )

    @classmethod
    def load(cls, folder: Path) -> RunItems:
        """Return what `save` wrote into the folder of a run."""
        path = find_file(folder, ITEMS)
        if not path.exists():
            raise FolderError(
                f"{folder} has no {ITEMS}, so nothing says which item has which key: train it with this version of "
                "adsh, or call update() of the loaded model"
            )
        arrays = Npz(path)
        try:
            first = {int(name[6:]): arrays[name].astype(np.int64) for name in arrays if name.startswith("first_")}
            source, at = (arrays[name].astype(np.int64) for name in ("source", "at"))
            return cls(_unpack(arrays["keys"]), source, at, first, frozenset(_unpack(arrays["left_out"])))
        except (KeyError, ValueError) as problem:
            raise FolderError(f"{path} is damaged ({problem}): copy the run's folder again") from None

    def save(self, path: Path) -> None:
        """Write items.npz, completely or not at all."""
        arrays = {f"first_{number}": _small(at) for number, at in self.first.items()}
        arrays |= {"keys": _pack(self.keys), "left_out": _pack(sorted(self.left_out))}
        with replacing_file(path) as file:
            np.savez_compressed(file, source=_small(self.source), at=_small(self.at), **arrays)  # type: ignore[arg-type]  # savez takes any name

    def __len__(self) -> int:
        return len(self.keys)

    def positions(self, keys: Sequence[str], what: str) -> Indices:
        """Return where these items are in the database.

        Args:
            keys: Keys of items.
            what: Where they were given, for the error.
        """
        number = {key: position for position, key in enumerate(self.keys)}
        missing = [key for key in keys if key not in number]
        if missing:
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise InputError(
                f"{what} names {missing[0]!r}{more}, which no item of the model's database is called: its keys look "
                f"like {self.keys[0]}"
            )
        return np.array([number[key] for key in keys], dtype=np.int64)

    def after(self, kept: Indices, new_keys: Sequence[str], new_at: Indices) -> RunItems:
        """Return the items after an update.

        Args:
            kept: Positions of those that stay, ascending.
            new_keys: Keys of the new ones.
            new_at: Their indices in their source.
        """
        number = max(self.first) + 1
        return RunItems(
            [*(self.keys[i] for i in kept.tolist()), *new_keys],
            np.concatenate([self.source[kept], np.full(len(new_keys), number)]),
            np.concatenate([self.at[kept], new_at]),
            self.first | {number: new_at},
            self.left_out,
        )


def _pack(texts: Sequence[str]) -> NDArray[np.uint8]:
    """Return texts as bytes, each ended by NUL, which no key holds."""
    return np.frombuffer("".join(f"{text}\0" for text in texts).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _unpack(octets: NDArray[np.uint8]) -> list[str]:
    return octets.tobytes().decode("utf-8", "surrogatepass").split("\0")[:-1]


def _small(numbers: Indices) -> NDArray[np.unsignedinteger]:
    largest = int(numbers.max(initial=0))
    small: NDArray[np.unsignedinteger] = numbers.astype(smallest_unsigned(largest + 1))
    return small
