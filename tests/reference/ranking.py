"""Mean average precision in expectation over the orders of tied items, one query and one distance at a time."""

from __future__ import annotations

import numpy as np

from adsh.hamming.bits import unpack


def expected_map(query_codes, database_codes, query_labels, database_labels, bits) -> float:
    """For single labels. McSherry and Najork 2008: inside a tie of N with R relevant, each place holds a
    relevant item with probability R / N, and then (R - 1) / (N - 1) of those before it in the tie."""
    queries = unpack(query_codes, bits).astype(int)
    database = unpack(database_codes, bits).astype(int)
    values = []
    for query, label in zip(queries, query_labels, strict=True):
        distance = (bits - database @ query) // 2
        relevant = np.asarray(database_labels) == label
        above = relevant_above = 0
        total = 0.0
        for d in range(bits + 1):
            N, R = int(np.sum(distance == d)), int(np.sum(relevant & (distance == d)))
            for place in range(1, N + 1):
                before = (place - 1) * (R - 1) / (N - 1) if N > 1 else 0.0
                total += R / N * (relevant_above + before + 1) / (above + place)
            above, relevant_above = above + N, relevant_above + R
        values.append(total / relevant.sum() if relevant.any() else 0.0)
    return float(np.mean(values))
