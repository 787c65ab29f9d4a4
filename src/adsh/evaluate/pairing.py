"""Queries and a database: what is counted and ranked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes, as_words, number_rows
from ..labels import Ids
from .relevance import Relevance


@dataclass(frozen=True)
class Pairing:
    """Codes of queries and database, and which items are relevant. Equal queries of one kind are stored once."""

    query_codes: Codes  # (q, bytes) of the distinct queries, those of one kind side by side
    query_kinds: Ids  # (q,)
    places: NDArray[np.int64]  # (queries,) where each is among the distinct ones
    database_codes: Codes  # (n, bytes)
    relevance: Relevance
    bits: int
    leave_one_out: bool = False  # query i is item i of the database, and left out of its own ranking

    @classmethod
    def of(cls, query_codes: Codes, database_codes: Codes, relevance: Relevance, bits: int) -> Pairing:
        """Merge equal queries: they have the same ranking, and so the same metrics.

        Args:
            query_codes: packed, (queries, bytes).
            database_codes: packed, (n, bytes).
            relevance: the grade of each item for each query.
            bits: the code length.

        Returns:
            The pairing of the distinct queries with the database.
        """
        kinds = relevance.query_kinds
        count, places = number_rows(np.column_stack([kinds.astype(np.uint64), as_words(query_codes)]))
        first = np.empty(count, dtype=np.int64)
        first[places] = np.arange(len(places))  # any of the equal ones
        return cls(query_codes[first], kinds[first], places, database_codes, relevance, bits)

    def own_grades(self) -> NDArray[np.int64]:
        """Return (n,) the grade of each item for itself, where the queries are the database."""
        kinds, row_of = np.unique(self.query_kinds, return_inverse=True)
        own = np.empty(len(row_of), dtype=np.int64)
        for row, kind in enumerate(kinds):
            items = np.flatnonzero(row_of == row)
            own[items] = self.relevance.grades(np.array([kind]))[0][self.relevance.item_kinds[items]]
        return own

    @classmethod
    def among(cls, codes: Codes, relevance: Relevance, bits: int) -> Pairing:
        """Return the pairing of each item with all others; equal ones are left apart, each is another's item."""
        return cls(codes, relevance.query_kinds, np.arange(len(codes)), codes, relevance, bits, leave_one_out=True)
