"""Binary quadratic programming: signs b of large b'A b, by clustering and single flips (Kang, Li and Zhou, 2016).

With A + lambda I = U'U, the points u_i and their opposites -u_i form two clusters of equal size, b_i u_i in one and
-b_i u_i in the other: the larger b'A b, the tighter the clusters. Using one of the points as a cluster's centre at most
doubles the least sum of squared distances, and the clusters around the centre u_j are b_i = sign(u_i . u_j) =
sign(A_ij). So the signs of each row of A are a candidate, and the best is improved by single flips.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def cluster_signs(A: Doubles) -> Doubles:
    """Return (m,) the signs of the clustering around the best centre; A is symmetric, its diagonal is ignored."""
    candidates = np.where(A >= 0, 1.0, -1.0)
    np.fill_diagonal(candidates, 1.0)
    best: Doubles = candidates[np.argmax(quadratic_forms(A, candidates))]
    return best


def flip_greedily(A: Doubles, signs: Doubles) -> Doubles:
    """Return the signs after single flips, the best first, until none raises b'A b. A flip costs O(m)."""
    signs = signs.copy()
    A = A - np.diag(np.diag(A))
    gain = -4 * signs * (A @ signs)  # of flipping each
    least = 1e-9 * np.abs(A).sum()
    while gain.max() > least:
        i = int(np.argmax(gain))
        signs[i] = -signs[i]
        gain[i] = -gain[i]
        gain -= 8 * signs * A[:, i] * signs[i]
    return signs


def maximize_signs(A: Doubles, start: Doubles) -> Doubles:
    """Return signs of large b'A b: the better of two local optima, from `start` and from the clustering.

    The result is never worse than `start`, which wins a tie.
    """
    from_start, from_clusters = flip_greedily(A, start), flip_greedily(A, cluster_signs(A))
    both = quadratic_forms(A, np.stack([from_start, from_clusters]))
    return from_clusters if both[1] > both[0] + 1e-9 * np.abs(A).sum() else from_start


def quadratic_forms(A: Doubles, signs: Doubles) -> Doubles:
    """Return b'A b for each row b of `signs`."""
    sums: Doubles = ((signs @ A) * signs).sum(axis=1)
    return sums
