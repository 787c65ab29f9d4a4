"""What an update changed of the items that stay."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes
from ..learn.changes import ChangedDatabase


class CodedItems(NamedTuple):
    """The codes and labels of a model's items."""

    codes: Codes
    sets: list[tuple[str, ...]]
    ids: NDArray[np.integer[Any]]
    names: list[str]


class Differences(NamedTuple):
    """Which of the items that stay have other names of labels, and which other codes."""

    names: NDArray[np.bool_]
    codes: NDArray[np.bool_]

    @classmethod
    def of(cls, before: CodedItems, after: CodedItems, changed: ChangedDatabase) -> Differences:
        """Compare the items that stay."""
        kept, now = changed.kept, after.ids[: len(changed.kept)]
        number = {names: k for k, names in enumerate(dict.fromkeys([*before.sets, *after.sets]))}
        then_set, now_set = (np.array([number[names] for names in sets]) for sets in (before.sets, after.sets))
        codes = (before.codes[kept] != after.codes[: len(kept)]).any(axis=1)
        return cls(then_set[before.ids[kept]] != now_set[now], codes)
