"""The one interface of every index, wherever its items are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from ..errors import InputError
from ..hamming.small_vectors import Projection
from .export import to_faiss, to_npy, to_parquet
from .matches import Item, Matches, StoredVectors
from .rows import Gathered, Rows
from .validation import check_keys

Ranking = Literal["hamming", "asymmetric"]


class Index(ABC):
    """Items by key, each with a packed code, found by the distance of their codes. A context manager."""

    location: str  # where it is, as it may be shown: without a password
    bits: int
    model: str | None  # the fingerprint of the model that made the codes, where it was given
    keeps_vectors = True  # whether items can be added with vectors

    @property
    def has_vectors(self) -> bool:
        """Whether items were ever added with vectors, so that `rerank=True` can order by them."""
        return self.projection is not None

    @property
    def projection(self) -> Projection | None:
        """How features are shortened; None where no vectors were given yet."""
        return None

    def adopt(self, projection: Projection) -> None:
        """Shortens features as another index does, so that its `StoredVectors` can be added; before any others are."""
        raise InputError(f"{self.location} keeps no vectors")

    @abstractmethod
    def add(
        self, keys: Sequence[str], codes: Any, metadata: Sequence[Any] | None = None, *, vectors: Any = None
    ) -> int:
        """Stores items, and gives how many keys are new. Durable when it returns; all of them or, on an error, none.

        A key that is there already gets the new code, metadata and vector whole, and keeps its place among equals.
        `metadata` is a JSON dictionary or None for each item. `vectors` are features (n, d) for `rerank=True`; the
        first ones given decide the projection to 64 numbers of one byte, so give some hundreds at least.
        """

    @abstractmethod
    def remove(self, keys: Sequence[str]) -> int:
        """Takes items out, and gives how many of the keys were there. Durable when it returns."""

    @abstractmethod
    def search(
        self,
        codes: Any,
        k: int = 10,
        *,
        where: dict[str, Any] | None = None,
        offset: int = 0,
        ranking: Ranking = "hamming",
        vectors: Any = None,
        rerank: bool = False,
    ) -> list[Matches]:
        """The nearest k items of each code, exactly; all items where there are fewer.

        Equal distances come in the order of insertion or, with `rerank=True` and the queries' features (or what
        `stored_vectors` gave) as `vectors`, of those features' distance. `where` keeps items by their metadata:
        `{"class": "cat"}`, `{"year": {"ge": 2000}}`; k are found after that. `offset` leaves out the first ones, to
        page. With `ranking="asymmetric"`, `codes` are the real-valued outputs of a network, `model.outputs(X)`.
        """

    @abstractmethod
    def within(
        self,
        codes: Any,
        radius: int,
        *,
        where: dict[str, Any] | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[Matches]:
        """All items of each code within a Hamming distance, nearest first; `offset` and `limit` page through them."""

    @abstractmethod
    def get(self, keys: Sequence[str]) -> list[Item | None]:
        """The items of these keys as they are stored; None for a key that is not there."""

    @abstractmethod
    def note(self, name: str, text: str) -> None:
        """Keeps a short text beside the items, such as where the model lies. Durable when it returns."""

    @abstractmethod
    def noted(self, name: str) -> str | None:
        """The text kept under this name."""

    @abstractmethod
    def batches(self, size: int = 1 << 14) -> Iterator[Rows]:
        """All items as columns, in the order of insertion, so many at a time."""

    def rows(self) -> Rows | None:
        """All items as columns, in the order of insertion; None where there are none."""
        gathered = Gathered()
        for rows in self.batches():
            gathered.append(rows)
        return gathered.rows()

    def items(self) -> Iterator[Item]:
        """Every item's key, code and metadata, in the order of insertion."""
        for rows in self.batches():
            yield from rows.items()

    def sample(self, count: int) -> list[Item]:
        """At most so many items: the first ones, or where the index can without reading all, spread over it."""
        return list(islice(self.items(), count))

    def stored_vectors(self, keys: Sequence[str]) -> StoredVectors | None:
        """The vectors of items that are there, to search from them with `rerank=True`; None where one has none."""
        return None

    def keys(self) -> list[str]:
        """Every key, in the order of insertion."""
        return [key for rows in self.batches() for key in rows.keys.run(0, len(rows))]

    def to_faiss(self) -> Any:
        """The codes as a faiss.IndexBinaryFlat; its number i is `keys()[i]`."""
        return to_faiss(self.rows(), self.bits)

    def to_npy(self, path: str | Path) -> Path:
        """Writes the codes to a .npy file and the keys beside it to NAME.keys.npy, whose path it gives."""
        return to_npy(self.rows(), self.bits, Path(path))

    def to_parquet(self, path: str | Path) -> None:
        """Writes key, code and metadata (JSON) as a Parquet file."""
        to_parquet(self.rows(), self.bits, Path(path))

    @abstractmethod
    def compact(self) -> None:
        """Tidies what earlier changes left, so that opening and searching are as fast as they can be."""

    @abstractmethod
    def info(self) -> dict[str, Any]:
        """What the index holds and how it is searched."""

    @abstractmethod
    def verify(self) -> list[str]:
        """Reads everything and gives what is wrong with it: nothing, where all is well."""

    @abstractmethod
    def __len__(self) -> int: ...

    def __contains__(self, key: object) -> bool:
        try:
            check_keys([key])
        except InputError:  # no such key can be there
            return False
        assert isinstance(key, str)
        return self.get([key])[0] is not None

    @abstractmethod
    def close(self) -> None:
        """Ends the use of this handle; what was added stays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
