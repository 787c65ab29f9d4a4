"""Which items of a segment a filter accepts: found out item by item, or for all of them at once where that pays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..deadline import check_deadline
from ..filters import Filter
from ..number_columns import NumberColumns
from ..text_column import TextColumn

_ACCEPTED, _REJECTED = 1, -1  # 0: not evaluated yet
_AT_A_TIME = 1 << 12
_RARE = 16  # a filter is rare if at most 1/16 of the items can meet it
# Deciding for all n items costs as much as evaluating n / this many of them: by columns that are there, or by
# searching all metadata and parsing it into columns.
_BY_COLUMNS, _BY_READING = 1024, 16


class FilterResults:
    """The results of one filter on the items of a segment.

    Args:
        where: the filter.
        metadata: of the items.
        numbers: the same metadata's numbers.
    """

    def __init__(self, where: Filter, metadata: TextColumn, numbers: NumberColumns) -> None:
        self._where, self._metadata, self._numbers = where, metadata, numbers
        self._results = np.zeros(len(metadata), dtype=np.int8)
        self._columns_used = self._read = False

    def accepted(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the filter accepts each of these items."""
        results, count = self._results, len(self._metadata)
        new = positions[results[positions] == 0]
        if not self._columns_used and self._numbers.ready and len(new) * _BY_COLUMNS >= count:
            self._use_columns()
            new = positions[results[positions] == 0]
        if not self._read and len(new) * _BY_READING >= count:
            self._read_all()
            new = positions[results[positions] == 0]
        for start in range(0, len(new), _AT_A_TIME):
            check_deadline()
            some = new[start : start + _AT_A_TIME]
            accepts, texts = self._where.accepts, self._metadata.at(some)
            known = {text: _ACCEPTED if accepts(text) else _REJECTED for text in set(texts)}  # many are equal
            results[some] = [known[text] for text in texts]
        return results[positions] > 0

    def candidates(self) -> NDArray[np.int64] | None:
        """Return the positions of all items that the filter may accept, if it is known to be rare; else None."""
        if not self._columns_used and not self._read:
            return None
        possible = np.flatnonzero(self._results >= 0)
        return possible if len(possible) * _RARE <= len(self._metadata) else None

    def _use_columns(self) -> None:
        """Decide what the columns of numbers decide."""
        columns = self._numbers.columns()
        met = np.full(len(self._metadata), not self._where.alternatives)  # these are open for all items
        possible = np.ones(len(self._metadata), dtype=bool)
        for name, test, value in self._where.tests:
            check_deadline()
            decided = columns[name].decide(test, value) if name in columns else None
            if decided is None:
                met[:] = False  # this condition is open for all items
            else:
                met &= decided[0]
                possible &= decided[1]
        self._results[met] = _ACCEPTED
        self._results[~possible] = _REJECTED
        self._columns_used = True

    def _read_all(self) -> None:
        """Reject all items that lack a text or the name of a field; build the columns if that leaves too many."""
        count = len(self._metadata)
        for needle in self._where.required:
            containing = self._metadata.containing(needle.encode(), count // _RARE)
            if containing is not None:
                lacking = np.ones(count, dtype=bool)
                lacking[containing] = False
                self._results[lacking] = _REJECTED
                self._read = True
                return
        if not self._columns_used:
            self._use_columns()
        self._read = True
