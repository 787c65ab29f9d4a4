"""Items by what they show, not by what they are called: who is in a dataset twice, and who on both sides of a split.

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

_SIZE = 16
_AT_ONCE = 256
_SHOWN = 5


def item_digest(item: NDArray[Any]) -> bytes:
    """16 bytes that two items share only if their shape, type and values are equal."""
    plain = np.ascontiguousarray(item)
    head = f"{plain.dtype.str}{plain.shape}".encode()
    return hashlib.blake2b(plain.data, digest_size=_SIZE, key=head[:64]).digest()


def digests(dataset: Dataset, progress: Callable[[int], None] | None = None) -> Digests:
    """(n, 16) the digest of every item. Reads them all; `progress` is told how many are done."""
    found = bytearray()
    for start in range(0, len(dataset), _AT_ONCE):
        indices = range(start, min(start + _AT_ONCE, len(dataset)))
        found += b"".join(item_digest(item) for item in dataset.__getitems__(indices))
        if progress is not None:
            progress(indices.stop)
    return np.frombuffer(bytes(found), dtype=np.uint8).reshape(-1, _SIZE)


def copies(found: Digests) -> int:
    """How many items are a copy of an earlier one."""
    return len(found) - len(unique_rows(found)[0]) if len(found) else 0


def overlap(found: Digests, split: Split) -> tuple[Indices, Indices]:
    """Pairs (asking, answering) with the same content: queries or validation items, and who else they meet.

    An asking item may not be in the database or the training part, and no validation item may be a query.
    """
    kinds = unique_rows(found)[1]
    both = _pairs(kinds, np.union1d(split.queries, split.validation), np.union1d(split.database, split.training))
    apart = _pairs(kinds, split.queries, split.validation)
    return np.concatenate([both[0], apart[0]]), np.concatenate([both[1], apart[1]])


def check_overlap(dataset: Dataset, split: Split, found: Digests | None = None) -> int:
    """Raises where an item that asks is also in the database by content; else, how many copies the database holds.

    Reads every item, unless the digests are given.
    """
    split.check(len(dataset))
    found = digests(dataset) if found is None else found
    asking, answering = overlap(found, split)
    if len(asking):
        shown = [f"{dataset.keys[i]} = {dataset.keys[j]}" for i, j in zip(asking[:_SHOWN], answering, strict=False)]
        more = f" and {len(asking) - _SHOWN:,} more" if len(asking) > _SHOWN else ""
        raise InputError(
            f"the split {split.protocol} has {len(asking):,} items on both sides, asking and answering: "
            f"{', '.join(shown)}{more}; delete one of each, or leave the copies out, without_overlap (--skip-copies)"
        )
    return copies(found[split.database])


def without_overlap(split: Split, found: Digests) -> tuple[Split, Indices]:
    """The split less the copies of asking items in its database and training, and which items those are.

    Queries stay as drawn, so that figures are over the same ones; validation items that copy a query go too.
    """
    _, dropped = overlap(found, split)
    dropped = np.unique(dropped)
    kept = replace(
        split,
        database=np.setdiff1d(split.database, dropped),
        training=np.setdiff1d(split.training, dropped),
        validation=np.setdiff1d(split.validation, dropped),
    )
    return kept, dropped


def _pairs(kinds: NDArray[np.integer[Any]], asking: Indices, answering: Indices) -> tuple[Indices, Indices]:
    """Who of `answering` has the content of one of `asking`, each with the first such."""
    first, where = np.unique(kinds[asking], return_index=True)
    copy = answering[np.isin(kinds[answering], first)]
    return asking[where[np.searchsorted(first, kinds[copy])]], copy
