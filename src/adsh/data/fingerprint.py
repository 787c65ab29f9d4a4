"""A short name for data: two runs on the same items and labels have the same, others do not."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets
from .items import Items

Fingerprint = dict[str, str]  # by what it is of, so that a difference can be named

_EVERY = 16  # of the spread sample of a lazy source: reading all its items may take hours
_AT_ONCE = 1 << 24  # bytes


def fingerprint(items: Items, labels: LabelSets | None = None, what: str = "items") -> Fingerprint:
    """Of the number, shape and values of items, and of their labels.

    All items of an array are read, a memory-mapped one up to 4 GB. Of a larger or lazy source, and of images in
    files, some 256 are, spread evenly; of files, the lengths of all count too.
    """
    n = len(items)
    marks = {f"number of {what}": f"{n:,}", f"shape of {what}": " x ".join(str(side) for side in items.shape)}
    indices = np.arange(n) if items.known_by_all else items.spread()[::_EVERY]
    step = max(1, _AT_ONCE // max(4 * int(np.prod(items.shape)), 1))
    digest = blake2b(digest_size=16)
    for start in range(0, len(indices), step):
        digest.update(items.take(indices[start : start + step]).data)
    marks[what] = digest.hexdigest()
    sizes = items.file_sizes()
    if sizes is not None:
        marks[f"files of {what}"] = blake2b(sizes.data, digest_size=16).hexdigest()
    if labels is not None:
        marks[f"labels of {what}"] = of_labels(labels)
    return marks


def of_labels(labels: LabelSets) -> str:
    """A digest of each point's label set and of what the tags are called."""
    digest = blake2b(repr((labels.ids.dtype.str, labels.names)).encode(), digest_size=16)
    for array in (labels.starts, labels.tags, labels.ids):
        of_array(array, digest)
    return digest.hexdigest()


def of_similarity(similarity: Any) -> Fingerprint:
    """Of a given S, dense or scipy-sparse."""
    digest = blake2b(repr(tuple(similarity.shape)).encode(), digest_size=16)
    if hasattr(similarity, "tocsr"):
        sparse = similarity.tocsr()
        for array in (sparse.indptr, sparse.indices, sparse.data):
            of_array(array, digest)
    else:
        dense = similarity.detach().cpu() if hasattr(similarity, "detach") else similarity
        of_array(np.asarray(dense), digest)
    return {"similarity": digest.hexdigest()}


def differences(here: Fingerprint, there: Fingerprint) -> list[str]:
    """In words, what is not the same: the value on each side where it is short enough to tell something."""
    told = []
    for name in [*here, *(name for name in there if name not in here)]:
        mine, other = here.get(name, "not given"), there.get(name, "not given")
        if mine != other:
            told.append(f"{name} {'differ' if len(mine) == len(other) == 32 else f'{mine}, not {other}'}")
    return told


def of_array(array: NDArray[Any], digest: Any) -> None:
    """Feeds an array into a digest, in blocks of rows, so that a memory-mapped one is never read whole."""
    rows = max(1, _AT_ONCE // max(array[:1].nbytes, 1))
    for start in range(0, len(array), rows):
        digest.update(np.ascontiguousarray(array[start : start + rows]).data)
