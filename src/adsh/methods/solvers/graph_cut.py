"""Exact minimization of a submodular binary energy by a minimum cut.

    E(b) = sum over pairs (i, j) of a_ij [b_i != b_j]  -  sum over i of h_i [b_i = +1],   a_ij >= 0

Such an energy is submodular: in a graph with a source (+1), a sink (-1) and edges of capacity a_ij both ways between
two points, every b is a cut of exactly that cost, up to a constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MissingExtraError

Integers = NDArray[np.int64]
_LARGEST = 2**31 - 1  # scipy's flows are 32-bit integers


def minimize_energy(h: Integers, i: Integers, j: Integers, a: Integers) -> NDArray[np.int8]:
    """Return the signs of least energy.

    Args:
        h: (m,) integers, how strongly each point prefers +1.
        i: (p,) the first point of each pair.
        j: (p,) the second.
        a: (p,) integers of at least 0, the cost where the two signs differ.

    Returns:
        (m,) the signs b that minimize E(b).
    """
    if (h >= 0).all() or (h <= 0).all():  # all prefer the same sign, and equal signs cost nothing
        return np.full(len(h), 1 if h.sum() >= 0 else -1, dtype=np.int8)
    sparse, graph = load_scipy()
    m = len(h)
    source, sink, points = m, m + 1, np.arange(m)
    starts = np.concatenate([i, j, np.full(m, source), points])
    ends = np.concatenate([j, i, points, np.full(m, sink)])
    capacity = np.concatenate([a, a, np.maximum(h, 0), np.maximum(-h, 0)])
    capacity = capacity // (1 + int(max(np.abs(h).sum(), capacity.max())) // _LARGEST)
    capacities = sparse.csr_array((capacity.astype(np.int32), (starts, ends)), shape=(m + 2, m + 2))
    flow = graph.maximum_flow(capacities, source, sink).flow
    residual = capacities - flow
    residual.eliminate_zeros()
    reached = graph.breadth_first_order(residual, source, return_predecessors=False)
    signs = np.full(m + 2, -1, dtype=np.int8)
    signs[reached] = 1
    return signs[:m]


def load_scipy() -> tuple[Any, Any]:
    """Return scipy.sparse and its csgraph. Raises MissingExtraError with the install command."""
    try:
        from scipy import sparse
        from scipy.sparse import csgraph
    except ImportError:
        raise MissingExtraError("graph cuts need scipy: pip install 'adsh[baselines]'") from None
    return sparse, csgraph
