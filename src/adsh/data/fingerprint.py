"""Fingerprints of data: equal for the same items and labels, different otherwise."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import LabelSets
from .items import Items

Fingerprint = dict[str, str]  # of each aspect, so that a difference can be named

_EVERY = 16  # item of the spread sample of a lazy source: reading all its items may take hours
_AT_ONCE = 1 << 24  # bytes read at a time


def fingerprint(items: Items, labels: LabelSets | None = None, what: str = "items") -> Fingerprint:
    """Return the fingerprint of items and their labels.

    All items of an array are read, if it is memory-mapped up to 4 GB. Of a larger or lazy source, and of images in
    files, some 256 are, spread evenly; the sizes of all files count too.

    Args:
        items: their number, shape and values count.
        labels: of the items, if they count.
        what: what the items are called where fingerprints differ.

    Returns:
        A short text for each aspect, by its name.
    """
    n = len(items)
    marks = {f"number of {what}": f"{n:,}", f"shape of {what}": " x ".join(str(side) for side in items.shape)}
    indices = np.arange(n) if items.fingerprint_all else items.spread()[::_EVERY]
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
    """Return a digest of each point's label set and of the names of the tags."""
    digest = blake2b(repr((labels.ids.dtype.str, labels.names)).encode(), digest_size=16)
    for array in (labels.starts, labels.tags, labels.ids):
        of_array(array, digest)
    return digest.hexdigest()


def of_similarity(similarity: Any) -> Fingerprint:
    """Return the fingerprint of a given similarity matrix, dense or scipy-sparse."""
    digest = blake2b(repr(tuple(similarity.shape)).encode(), digest_size=16)
    if hasattr(similarity, "tocsr"):
        sparse = similarity.tocsr()
        for array in (sparse.indptr, sparse.indices, sparse.data):
            of_array(array, digest)
    else:
        dense = similarity.detach().cpu() if hasattr(similarity, "detach") else similarity
        of_array(np.asarray(dense), digest)
    return {"similarity": digest.hexdigest()}


def differences(found: Fingerprint, expected: Fingerprint) -> list[str]:
    """Return in words what differs, with both values where they are no digests."""
    lines = []
    for name in [*found, *(name for name in expected if name not in found)]:
        value, other = found.get(name, "not given"), expected.get(name, "not given")
        if value != other:
            lines.append(f"{name} {'differ' if len(value) == len(other) == 32 else f'{value}, not {other}'}")
    return lines


def of_array(array: NDArray[Any], digest: Any) -> None:
    """Update a digest with an array, in blocks of rows, so that a memory-mapped one is never in memory as a whole."""
    rows = max(1, _AT_ONCE // max(array[:1].nbytes, 1))
    for start in range(0, len(array), rows):
        digest.update(np.ascontiguousarray(array[start : start + rows]).data)
