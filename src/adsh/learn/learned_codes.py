"""What training leaves: the codes of every database point, and codes for new label sets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.bits import Codes, pack, unpack
from ..labels import LabelSets, smallest_unsigned
from ..utils.arrays import unique_rows
from .code_table import CodeTable
from .last_update import LastUpdate
from .rows import Rows
from .similarity import Floats, Indices, SharedTags, weighted
from .sweep import sweep, zero_tolerance

NO_SET = -1  # the label set of rows whose points took no part in learning

_MAX_SWEEPS = 1000  # each sweep lowers the objective, so the fixed point comes long before


@dataclass(frozen=True)
class LearnedCodes:
    """Codes of n points as distinct rows and row numbers: a few bytes a point, and each row once."""

    bits: int
    label_set: Indices  # (R,)  NO_SET where the network gave the code
    packed: Codes  # (R, bytes)
    count: NDArray[np.int64]  # (R,)
    row_numbers: NDArray[np.unsignedinteger[Any]]  # (n,)

    @classmethod
    def of(cls, table: CodeTable, others: Codes | None = None) -> LearnedCodes:
        """Return the table's codes.

        Args:
            table: the learned table.
            others: the network's codes of the points that have none in the table, in order.
        """
        rows, numbers = table.rows, table.row_numbers()
        packed = pack(rows.codes)
        if table.label_sets is None:  # a given S: rows are points, and only their codes distinguish them
            packed, position, count = unique_rows(packed)
            numbers = position.astype(smallest_unsigned(len(packed)))[numbers]
            return cls(table.bits, np.full(len(packed), NO_SET, dtype=np.int64), packed, count, numbers)
        if others is None or not len(others):
            return cls(table.bits, rows.label_set, packed, rows.count, numbers)
        extra, position, count = unique_rows(others)
        total = len(rows) + len(extra)
        missing = np.flatnonzero(numbers == len(rows))
        numbers = numbers.astype(smallest_unsigned(total), copy=False)
        numbers[missing] = len(rows) + position
        label_set = np.concatenate([rows.label_set, np.full(len(extra), NO_SET, dtype=np.int64)])
        return cls(
            table.bits,
            label_set,
            np.concatenate([packed, extra]),
            np.concatenate([rows.count, count]),
            numbers,
        )

    @classmethod
    def of_codes(cls, codes: Codes, bits: int) -> LearnedCodes:
        """Return the packed codes of n points as distinct rows."""
        packed, position, count = unique_rows(codes)
        numbers = position.astype(smallest_unsigned(len(packed)))
        return cls(bits, np.full(len(packed), NO_SET, dtype=np.int64), packed, count, numbers)

    def __len__(self) -> int:
        return len(self.row_numbers)

    @property
    def rows(self) -> Rows:
        """The distinct rows: label set, code, count."""
        return Rows(self.label_set, unpack(self.packed, self.bits), self.count)

    def labels(self, table: LabelSets) -> LabelSets:
        """Return the labels of all points, from the table of label sets that the rows refer to."""
        starts = np.append(table.starts, table.starts[-1])  # the last set is empty: of points that had no part
        sets = np.where(self.label_set == NO_SET, table.set_count, self.label_set)
        return LabelSets.table(starts, table.tags, table.names).with_ids(sets[self.row_numbers])

    def codes(self) -> Codes:
        """Return (n, bytes) packed codes of all points."""
        codes: Codes = self.packed[self.row_numbers]
        return codes

    def dense(self) -> NDArray[np.int8]:
        """Return (n, c) codes of all points, +1/-1."""
        codes: NDArray[np.int8] = unpack(self.packed, self.bits)[self.row_numbers]
        return codes


class NewLabels:
    """Codes for new labelled points without their images.

    A label set of the database gets its most common code. A new one gets the fixed point of eq. (9), the code that
    training would converge to with the last sample's U'U and sums of U.
    """

    def __init__(self, learned: LearnedCodes, database: LabelSets, queries: LabelSets, last: LastUpdate) -> None:
        self._learned = learned
        self.database, self.queries, self.last = database, queries, last
        counts: dict[frozenset[Any], Counter[bytes]] = {}
        for row in np.flatnonzero(learned.label_set != NO_SET):
            names = frozenset(database.names_of(int(learned.label_set[row])))
            counts.setdefault(names, Counter())[learned.packed[row].tobytes()] += int(learned.count[row])
        self._most_common = {names: codes.most_common(1)[0][0] for names, codes in counts.items()}

    @classmethod
    def of(cls, table: CodeTable, learned: LearnedCodes) -> NewLabels | None:
        """Return it for an updated table; None where the table was given similarities instead of labels."""
        if table.label_sets is None or table.query_label_sets is None or table.last_update is None:
            return None
        return cls(learned, table.label_sets, table.query_label_sets, table.last_update)

    def codes(self, labels: LabelSets) -> Codes:
        """Return (n, bytes) packed codes, one a point of `labels`."""
        if (labels.empty & (labels.sizes > 0)).any():
            at = int(np.flatnonzero(labels.empty[labels.ids])[0])
            raise InputError(f"item {at} has no label: encode its image with encode()")
        by_set = np.zeros((labels.set_count, self._learned.packed.shape[1]), dtype=np.uint8)
        unknown = []
        for label_set in np.flatnonzero(labels.sizes):
            code = self._most_common.get(frozenset(labels.names_of(int(label_set))))
            if code is None:
                unknown.append(label_set)
            else:
                by_set[label_set] = np.frombuffer(code, dtype=np.uint8)
        if unknown:
            by_set[unknown] = pack(self._fixed_points(labels)[unknown])
        codes: Codes = by_set[labels.ids]
        return codes

    def _fixed_points(self, labels: LabelSets) -> Floats:
        """Return (K, c) the fixed point of eq. (9) for each label set, starting from 0."""
        last, bits = self.last, self._learned.bits
        similar = SharedTags(self.queries, labels).sum_rows(last.label_sets, last.sums)
        Q = -2 * bits * weighted(similar, last.sums, last.ratio)
        V = np.zeros_like(Q)
        for _ in range(_MAX_SWEEPS):
            before = V.copy()
            sweep(V, last.gram, Q, zero_tolerance(bits, last.samples))
            if np.array_equal(before, V):
                break
        return V
