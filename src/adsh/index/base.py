"""The interface of every index.

The public methods check what they are given, once for all kinds of index, and pass it on to the few hooks that a kind
implements: `_add`, `_remove`, `_search`, `_within`, `_find`, `_fact` and `_set_fact`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.query import Query
from ..hamming.small_vectors import NONE, Projection
from .collection import Collection
from .export import to_faiss, to_npy, to_parquet
from .filters import Filter
from .header import PROJECTION, Header, load_projection, save_projection
from .matches import Item, Matches, StoredVectors
from .rows import SAMPLE_BYTES, Rows, RowsBuilder
from .validation import (
    LONGEST_KEY,
    Batch,
    check_by_network,
    check_given,
    check_items,
    check_keys,
    check_number,
    check_queries,
)

Ranking = Literal["hamming", "asymmetric"]
FOLLOWED = "followed"  # the note with the model whose database an index holds, where `model` is a newer one
_SAMPLED_AT_ONCE = 256  # items read for a sample before its size is looked at


class Index(Collection):
    """Items by key, each with a packed code, found by the distance of their codes. A context manager."""

    location: str  # for messages: a folder, or an address without its password
    folder: Path | None = None  # the folder of an index on this machine; None for one on a server
    keeps_vectors: ClassVar[bool] = True  # whether items can be added with vectors
    ranks_asymmetric: ClassVar[bool] = True  # whether ranking="asymmetric" is supported
    longest_key: ClassVar[int] = LONGEST_KEY  # bytes of UTF-8
    _header: Header

    @property
    def bits(self) -> int:
        """The length of the codes."""
        return self._header.bits

    @property
    def has_vectors(self) -> bool:
        """Whether items were ever added with vectors, which `rerank=True` needs."""
        return self.projection is not None

    @property
    def projection(self) -> Projection | None:
        """The projection that compresses features; None until the first vectors are added."""
        return load_projection(self._fact(PROJECTION)) if self.keeps_vectors else None

    def set_projection(self, projection: Projection) -> None:
        """Use the projection of another index, so that its `StoredVectors` can be added here.

        Does nothing if this index has a projection already.
        """
        if not self.keeps_vectors:
            raise InputError(f"{self.location} keeps no vectors")
        self._set_fact(PROJECTION, save_projection(projection), overwrite=False)

    def add(
        self,
        keys: Sequence[str],
        codes: Any,
        metadata: Sequence[Any] | None = None,
        *,
        vectors: Any = None,
        by_network: Any = False,
    ) -> int:
        """Store items: all of them or, on an error, none. Durable when it returns.

        A key that exists already gets the new code, metadata and vector, and keeps its position among equal distances.

        Args:
            keys: one text per item, each given once.
            codes: packed codes (n, bytes).
            metadata: a JSON dictionary or None for each item.
            vectors: features (n, d) for `rerank=True`, or another index's `StoredVectors`. The first ones decide the
                projection to 64 numbers of one byte each, so start with a few hundred.
            by_network: whether the model's network computed the codes, for all items or for each: after an update of
                the model, `outdated` lists these, to encode them again.

        Returns:
            How many of the keys are new.
        """
        if vectors is not None and not self.keeps_vectors:
            raise self._no_vectors()
        batch = check_items(keys, codes, metadata, self.bits, self.longest_key)
        generations = check_by_network(by_network, len(batch.keys), self._header.generation)
        batch = batch._replace(generations=generations)
        return self._add(batch, vectors) if batch.keys else 0

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
        """Return the k nearest items of each query, exactly; all items if there are fewer.

        Args:
            codes: packed codes (q, bytes); with `ranking="asymmetric"`, the network's real-valued outputs
                `model.outputs(X)`.
            k: how many items to return for each query, counted after the filter.
            where: a filter on the metadata: `{"class": "cat"}`, `{"year": {"ge": 2000}}`.
            offset: how many of the nearest to skip, to page through the results.
            ranking: "hamming" or "asymmetric".
            vectors: the queries' features, or what `stored_vectors` returned; used by `rerank`.
            rerank: order equal distances by the distance of the vectors instead of the order of insertion.

        Returns:
            One `Matches` per query, nearest first.
        """
        if rerank and not self.keeps_vectors:
            raise self._no_vectors()
        if ranking == "asymmetric" and not self.ranks_asymmetric:
            raise InputError(
                f'{self.location} does not support ranking="asymmetric": use "hamming", or copy the index to a folder '
                "or PostgreSQL with adsh index copy"
            )
        queries = check_queries(codes, ranking, self.bits)
        k, offset = check_number("k", k, 1), check_number("offset", offset, 0)
        condition = None if where is None else Filter(where)
        if rerank:
            check_given(vectors)
        return self._search(queries, k, offset, condition, vectors if rerank else None)

    def within(
        self,
        codes: Any,
        radius: int,
        *,
        where: dict[str, Any] | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[Matches]:
        """Return all items of each query within a Hamming distance, nearest first.

        Args:
            codes: packed codes (q, bytes).
            radius: the largest distance.
            where: a filter on the metadata, as in `search`.
            offset: how many of the nearest to skip.
            limit: how many to return at most for each query; None for all.

        Returns:
            One `Matches` per query; equal distances in the order of insertion.
        """
        queries = check_queries(codes, "hamming", self.bits)
        radius, offset = check_number("radius", radius, 0), check_number("offset", offset, 0)
        limit = None if limit is None else check_number("limit", limit, 1)
        return self._within(queries, radius, offset, limit, None if where is None else Filter(where))

    def get(self, keys: Sequence[str]) -> list[Item | None]:
        """Return the stored items of these keys; None for a key that does not exist."""
        found = {item.key: item for rows in self._find(check_keys(keys)) for item in rows.items()}
        return [found.get(key) for key in keys]

    def stored_vectors(self, keys: Sequence[str]) -> StoredVectors | None:
        """Return the vectors of these items, to search by them with `rerank=True`; None if any of them has none."""
        if not self.keeps_vectors:
            return None
        by_key: dict[str, NDArray[np.int8]] = {}
        for rows in self._find(check_keys(keys)):
            if rows.vectors is None or (rows.vectors[:, 0] == NONE).any():
                return None
            by_key |= zip(rows.keys.run(0, len(rows)), rows.vectors, strict=True)
        if not by_key or len(by_key) < len(keys):
            return None
        return StoredVectors(np.stack([by_key[key] for key in keys]))

    # The names that these methods had in earlier versions.
    def adopt(self, projection: Projection) -> None:
        """Alias of `set_projection`."""
        self.set_projection(projection)

    def note(self, name: str, text: str) -> None:
        """Alias of `set_note`."""
        self.set_note(name, text)

    def noted(self, name: str) -> str | None:
        """Alias of `get_note`."""
        return self.get_note(name)

    @abstractmethod
    def batches(self, size: int = 1 << 14) -> Iterator[Rows]:
        """Yield all items in the order of insertion, at most `size` at a time."""

    def rows(self) -> Rows | None:
        """Return all items in the order of insertion; None if there are none."""
        builder = RowsBuilder()
        for rows in self.batches():
            builder.append(rows)
        return builder.rows()

    def items(self) -> Iterator[Item]:
        """Yield every item's key, code and metadata, in the order of insertion."""
        for rows in self.batches():
            yield from rows.items()

    def sample(self, count: int) -> list[Item]:
        """Return at most `count` items: spread over the index if that needs no full read, else the first ones.

        They are fewer where their metadata takes more than `SAMPLE_BYTES`.
        """
        return self.first(count)

    def first(self, count: int) -> list[Item]:
        """Return the first `count` items in the order of insertion, or fewer, as of `sample`."""
        found: list[Item] = []
        size = 0
        for rows in self.batches(min(count, _SAMPLED_AT_ONCE)):
            found.extend(rows.items())
            size += 0 if rows.metadata is None else rows.metadata.blob.nbytes
            if len(found) >= count or size > SAMPLE_BYTES:
                break
        return found[:count]

    def keys(self) -> list[str]:
        """Return every key, in the order of insertion."""
        return [key for rows in self.batches() for key in rows.keys.run(0, len(rows))]

    def to_faiss(self) -> Any:
        """Return the codes as a faiss.IndexBinaryFlat; its item i is `keys()[i]`."""
        return to_faiss(self.rows(), self.bits)

    def to_npy(self, path: str | Path) -> Path:
        """Write the codes to a .npy file and the keys to NAME.keys.npy next to it; return the latter's path."""
        return to_npy(self.rows(), self.bits, Path(path))

    def to_parquet(self, path: str | Path) -> None:
        """Write key, code and metadata (JSON) to a Parquet file."""
        to_parquet(self.rows(), self.bits, Path(path))

    @abstractmethod
    def compact(self) -> None:
        """Reorganise the storage, so that opening and searching are as fast as they can be."""

    @abstractmethod
    def info(self) -> dict[str, Any]:
        """Return what the index holds and how it is searched."""

    @abstractmethod
    def verify(self) -> list[str]:
        """Read everything and return what is wrong with it; an empty list if nothing is."""

    def storage_id(self) -> tuple[int, int] | None:
        """Return the device and inode of the index's file, (0, 0) if it was deleted; None for one on a server."""
        return None

    @property
    def read_only(self) -> bool:
        """Whether it was opened in a folder where nothing can be written: it can be searched, but not changed."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Close this handle. What was added stays."""

    def __contains__(self, key: object) -> bool:
        try:
            check_keys([key])
        except InputError:  # no such key can be stored
            return False
        assert isinstance(key, str)
        return self.get([key])[0] is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _add(self, batch: Batch, vectors: Any) -> int:
        """Store at least one item, and return how many keys are new; `vectors` is not None if there are any."""

    @abstractmethod
    def _search(self, queries: list[Query], k: int, offset: int, where: Filter | None, vectors: Any) -> list[Matches]:
        """Return the k nearest after the first `offset`.

        Args:
            queries: the queries.
            k: how many items to return.
            offset: how many to skip.
            where: the filter; None accepts every item.
            vectors: features of the queries, which order ties; None for the order of insertion.

        Returns:
            The matches of each query.
        """

    @abstractmethod
    def _within(
        self, queries: list[Query], radius: int, offset: int, limit: int | None, where: Filter | None
    ) -> list[Matches]:
        """Return all within the radius, or a page of them.

        Args:
            queries: the queries.
            radius: the largest distance.
            offset: how many of the nearest to skip.
            limit: how many to return at most; None for all.
            where: the filter; None accepts every item.

        Returns:
            The matches of each query.
        """

    @abstractmethod
    def _find(self, keys: list[bytes]) -> list[Rows]:
        """Return the items of these keys, in one piece or several, without those that do not exist."""

    def _no_vectors(self) -> InputError:
        return InputError(
            f"{self.location} keeps no vectors to order ties by: leave out vectors= and rerank=, or use an index in a "
            "folder or in PostgreSQL"
        )
