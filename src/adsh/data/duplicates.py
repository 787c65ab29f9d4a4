"""Duplicates by content: items that are in a dataset twice, or in both the queries and the database of a split.

An item's digest is of its decoded pixels (or its features), so a copy under another name, or saved again in another
lossless format, has the same one. A copy that was compressed anew or resized has other pixels and another digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..utils.arrays import unique_rows
from .dataset import Dataset
from .splits import Indices, Split

Digests = NDArray[np.uint8]  # (n, 16)

_SIZE = 16  # bytes of a digest
_AT_ONCE = 256  # items read at a time
_SHOWN = 5  # pairs named in an error


def item_digest(item: NDArray[Any]) -> bytes:
    """Return 16 bytes that two items share only if their shape, type and values are equal."""
    plain = np.ascontiguousarray(item)
    head = f"{plain.dtype.str}{plain.shape}".encode()
    return hashlib.blake2b(plain.data, digest_size=_SIZE, key=head[:64]).digest()


def digests(dataset: Dataset, progress: Callable[[int], None] | None = None) -> Digests:
    """Return (n, 16), the digest of every item. Reads them all; `progress` is called with how many are done."""
    found = bytearray()
    for start in range(0, len(dataset), _AT_ONCE):
        indices = range(start, min(start + _AT_ONCE, len(dataset)))
        found += b"".join(item_digest(item) for item in dataset.__getitems__(indices))
        if progress is not None:
            progress(indices.stop)
    return np.frombuffer(bytes(found), dtype=np.uint8).reshape(-1, _SIZE)


def count_duplicates(found: Digests) -> int:
    """Return how many items are a duplicate of an earlier one."""
    return len(found) - len(unique_rows(found)[0]) if len(found) else 0


def find_duplicates(found: Digests) -> tuple[Indices, Indices]:
    """Return the items whose content is that of an earlier one, ascending, and the first item of that content."""
    contents = unique_rows(found)[1] if len(found) else np.empty(0, dtype=np.intp)
    _, first = np.unique(contents, return_index=True)
    earliest = first[contents]
    later = np.flatnonzero(earliest < np.arange(len(found)))
    return later, earliest[later]


def overlap(found: Digests, split: Split) -> tuple[Indices, Indices]:
    """Find pairs of items with the same content in two parts of a split that may not share any.

    Queries and validation items may not be in the database or the training part, and no validation item may be a query.

    Returns:
        The queries or validation items, and the item that each is a copy of.
    """
    contents = unique_rows(found)[1]
    both = _pairs(contents, np.union1d(split.queries, split.validation), np.union1d(split.database, split.training))
    validation = _pairs(contents, split.queries, split.validation)
    return np.concatenate([both[0], validation[0]]), np.concatenate([both[1], validation[1]])


def check_overlap(dataset: Dataset, split: Split, found: Digests | None = None) -> int:
    """Check that no query is also in the database, by content.

    Args:
        dataset: the items.
        split: of the dataset.
        found: the digests of all items; without them, every item is read.

    Returns:
        How many items of the database are duplicates of others there.

    Raises:
        InputError: a query or validation item is also in the database or the training part.
    """
    split.check(len(dataset))
    found = digests(dataset) if found is None else found
    queries, duplicates = overlap(found, split)
    if len(queries):
        shown = [f"{dataset.keys[i]} = {dataset.keys[j]}" for i, j in zip(queries[:_SHOWN], duplicates, strict=False)]
        more = f" and {len(queries) - _SHOWN:,} more" if len(queries) > _SHOWN else ""
        raise InputError(
            f"the split {split.protocol} has {len(queries):,} items in both queries and database: "
            f"{', '.join(shown)}{more}; delete one of each, or drop the duplicates with without_overlap "
            "(--drop-duplicates)"
        )
    return count_duplicates(found[split.database])


def without_overlap(split: Split, found: Digests) -> tuple[Split, Indices]:
    """Drop the duplicates of queries and validation items from the database and the training part.

    Queries stay as drawn, so that metrics are over the same ones; validation items that duplicate a query go too.

    Returns:
        The split without them, and the items dropped.
    """
    _, dropped = overlap(found, split)
    dropped = np.unique(dropped)
    cleaned = replace(
        split,
        database=np.setdiff1d(split.database, dropped),
        training=np.setdiff1d(split.training, dropped),
        validation=np.setdiff1d(split.validation, dropped),
    )
    return cleaned, dropped


def _pairs(contents: NDArray[np.integer[Any]], queries: Indices, database: Indices) -> tuple[Indices, Indices]:
    """Return the items of `database` with the content of one of `queries`, each with the first such query.

    Args:
        contents: a number for the content of each item of the dataset.
        queries, database: indices of items.

    Returns:
        Two arrays of indices: the queries, and the database items.
    """
    first, where = np.unique(contents[queries], return_index=True)
    duplicates = database[np.isin(contents[database], first)]
    return queries[where[np.searchsorted(first, contents[duplicates])]], duplicates
