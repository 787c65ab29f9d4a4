"""Signs b of large b'A b (binary quadratic programming), within a factor of two of the best clustering.

With A + lambda I = U'U, the points u_i and their opposites -u_i part into two clusters of equal size, b_i u_i in the
one and -b_i u_i in the other: the larger b'A b, the tighter they are. Taking one of the points for a cluster's centre
at most doubles the least sum of squared distances to the centre, and the clusters around the centre u_j are
b_i = sign(u_i . u_j) = sign(A_ij). So the rows' signs are tried, each improved by single flips.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def clustered(A: Doubles) -> Doubles:
    """(m,) signs of the clustering around the best centre; A is symmetric, and its diagonal does not count."""
    candidates = np.where(A >= 0, 1.0, -1.0)
    np.fill_diagonal(candidates, 1.0)
    best: Doubles = candidates[np.argmax(values(A, candidates))]
    return best


def improve(A: Doubles, signs: Doubles) -> Doubles:
    """The signs after single flips, the best first, until none raises b'A b. O(m) a flip."""
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


def large_signs(A: Doubles, start: Doubles) -> Doubles:
    """Signs of large b'A b: the better of two improved ones, from `start` and from the clustering.

    Never worse than `start`, which stays where the other is only as good.
    """
    from_start, from_clusters = improve(A, start), improve(A, clustered(A))
    both = values(A, np.stack([from_start, from_clusters]))
    return from_clusters if both[1] > both[0] + 1e-9 * np.abs(A).sum() else from_start


def values(A: Doubles, signs: Doubles) -> Doubles:
    """b'A b of each row b."""
    sums: Doubles = ((signs @ A) * signs).sum(axis=1)
    return sums
