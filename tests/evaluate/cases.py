"""Small rankings for the metric tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from adsh.hamming.bits import pack


def at_distances(distances, bits):
    """One query code and database codes that lie at these distances from it."""
    query = np.ones((1, bits))
    database = np.ones((len(distances), bits))
    for row, distance in zip(database, distances, strict=True):
        row[:distance] = -1
    return pack(query), pack(database)


@st.composite
def small_rankings(draw, highest=1):
    """(distances, grades) of up to 7 items at up to 4 distances: at most 5,040 orders."""
    n = draw(st.integers(1, 7))
    distances = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    grades = draw(st.lists(st.integers(0, highest), min_size=n, max_size=n))
    return distances, grades
