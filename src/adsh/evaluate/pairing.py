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
