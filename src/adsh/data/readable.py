"""Every item read once before anything long starts: better a list now than a crash after hours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import InputError, first_line
from .content import Digests, item_digest
from .dataset import Dataset

_SHOWN = 5


@dataclass(frozen=True)
class Readable:
    """What a reading through gave."""

    dataset: Dataset  # the items that can be read: the dataset itself where all can
    bad: list[tuple[str, str]]  # key and reason of each that cannot
    digests: Digests  # (n, 16) of those that can, for `check_overlap`


def check_readable(
    dataset: Dataset, *, skip_bad: bool = False, progress: Callable[[int], None] | None = None
) -> Readable:
    """Reads every item. One that cannot be read raises, with all such counted and the first named.

    With `skip_bad` they are left out instead, and listed in the answer.
    """
    good: list[int] = []
    bad: list[tuple[str, str]] = []
    found = bytearray()
    for index in range(len(dataset)):
        try:
            found += item_digest(dataset[index])
            good.append(index)
        except InputError as problem:
            bad.append((dataset.keys[index], first_line(problem)))
        if progress is not None:
            progress(index + 1)
    if bad and (not skip_bad or not good):
        reasons = "; ".join(reason for _, reason in bad[:_SHOWN])
        more = f"; and {len(bad) - _SHOWN:,} more" if len(bad) > _SHOWN else ""
        then = "replace them, or leave them out with skip_bad (--skip-bad)" if good else "give images that can be read"
        raise InputError(
            f"{dataset.name}: {len(bad):,} of {len(dataset):,} items cannot be read: {reasons}{more}; {then}"
        )
    kept = dataset.subset(np.array(good)) if bad else dataset
    return Readable(kept, bad, np.frombuffer(bytes(found), dtype=np.uint8).reshape(len(good), -1))
