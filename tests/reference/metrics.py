"""Retrieval metrics the slow and obvious way: sort, walk down the list, and average over every order of the ties.

Works on one query: `distances` and `grades` are lists with an entry for each database item.
"""

from __future__ import annotations

import itertools
import math

import numpy as np


def hamming(query_signs, database_signs):
    """(queries, database) distances of +1/-1 codes, bit by bit."""
    return np.array([[int(np.sum(q != v)) for v in database_signs] for q in query_signs])


def shared(query_sets, database_sets):
    """(queries, database) how many tags two sets share."""
    return np.array([[len(set(a) & set(b)) for b in database_sets] for a in query_sets])


def stable_order(distances, grades):
    """The grades, nearest first, database order inside a tie."""
    return [grades[i] for i in sorted(range(len(distances)), key=lambda i: distances[i])]


def every_order(distances, grades):
    """The grades in every order that sorts the distances, each tie permuted in all ways."""
    ties = [[g for g, e in zip(grades, distances, strict=True) if e == d] for d in sorted(set(distances))]
    for choice in itertools.product(*(list(itertools.permutations(tie)) for tie in ties)):
        yield [grade for tie in choice for grade in tie]


def average_precision(ranked, k=None, divisor="retrieved"):
    k = len(ranked) if k is None else min(k, len(ranked))
    hits, total = 0, 0.0
    for place, grade in enumerate(ranked[:k], start=1):
        if grade > 0:
            hits += 1
            total += hits / place
    by = hits if divisor == "retrieved" else min(k, sum(grade > 0 for grade in ranked))
    return total / by if by else 0.0


def precision(ranked, k):
    k = min(k, len(ranked))
    return sum(grade > 0 for grade in ranked[:k]) / k


def recall(ranked, k):
    relevant = sum(grade > 0 for grade in ranked)
    return sum(grade > 0 for grade in ranked[:k]) / relevant if relevant else 0.0


def ndcg(ranked, k, gain="exponential"):
    def dcg(grades):
        gains = [2**grade - 1 if gain == "exponential" else grade for grade in grades[:k]]
        return sum(g / math.log2(1 + place) for place, g in enumerate(gains, start=1))

    ideal = dcg(sorted(ranked, reverse=True))
    return dcg(ranked) / ideal if ideal else 0.0


def mean_over_orders(metric, distances, grades):
    values = [metric(ranked) for ranked in every_order(distances, grades)]
    return sum(values) / len(values)


def radius_curve(distances, grades, bits, empty):
    """(radius 0..bits) precision, recall and items returned; precision is `empty` where nothing is returned."""
    rows = []
    relevant = sum(grade > 0 for grade in grades)
    for radius in range(bits + 1):
        got = [g for g, d in zip(grades, distances, strict=True) if d <= radius]
        hits = sum(grade > 0 for grade in got)
        rows.append((hits / len(got) if got else empty, hits / relevant if relevant else 0.0, len(got)))
    return np.array(rows, dtype=float)
