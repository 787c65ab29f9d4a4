"""Binary labels of least cost by a minimum cut, where agreeing never costs more than disagreeing.

    E(b) = sum over pairs (i, j) of a_ij [b_i != b_j]  -  sum over i of h_i [b_i = +1],   a_ij >= 0

Such an energy is submodular: a graph with a source (+1), a sink (-1) and an edge of capacity a_ij either way between
two points has a cut of exactly that cost, up to a constant, for every b.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MissingExtraError

Integers = NDArray[np.int64]
_LARGEST = 2**31 - 1  # scipy's flows are whole numbers of 32 bits


def least_cost(h: Integers, i: Integers, j: Integers, a: Integers) -> NDArray[np.int8]:
    """(m,) the signs b of least E(b), for pairs (i, j) of couplings a >= 0 in whole numbers."""
    if (h >= 0).all() or (h <= 0).all():  # all want the same side, and nothing is lost by agreeing
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
    left = capacities - flow
    left.eliminate_zeros()
    reached = graph.breadth_first_order(left, source, return_predecessors=False)
    signs = np.full(m + 2, -1, dtype=np.int8)
    signs[reached] = 1
    return signs[:m]


def energy(signs: NDArray[np.int8], h: Integers, i: Integers, j: Integers, a: Integers) -> int:
    """E(b)."""
    return int(a[signs[i] != signs[j]].sum() - h[signs > 0].sum())


def load_scipy() -> tuple[Any, Any]:
    """scipy.sparse and its csgraph, or an error with the command that installs them."""
    try:
        from scipy import sparse
        from scipy.sparse import csgraph
    except ImportError:
        raise MissingExtraError("graph cuts need scipy: pip install 'adsh[baselines]'") from None
    return sparse, csgraph
