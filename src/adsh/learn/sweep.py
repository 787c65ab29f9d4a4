"""Eq. (9): the codes of all rows, bit after bit, in closed form."""

from __future__ import annotations

import numpy as np

from .similarity import Floats


def zero_tolerance(bits: int, samples: int) -> float:
    """How small the argument of the sign counts as 0.

    r makes S sum to zero, so with saturated outputs the argument often is 0 exactly, up to the rounding
    of sums as large as 2 c m. Without a tolerance, the order of summation would decide the bit.
    """
    return 1e-9 * 2 * bits * samples


def sweep(codes: Floats, gram: Floats, linear: Floats, tolerance: float) -> None:
    """One pass of eq. (9) over the bits, in place.

        v_k = -sign(2 v_-k . (U'_-k U_k) + Q_k)

    codes (rows, c) of +1/-1 (or 0 before the first pass), gram (c, c) = U'U, linear (rows, c) = Q.
    sign(0) keeps the bit, or gives +1 where there is none. O(rows c^2).
    """
    coupling = 2.0 * gram
    np.fill_diagonal(coupling, 0.0)
    for k in range(codes.shape[1]):
        z = codes @ coupling[:, k] + linear[:, k]
        kept = np.where(codes[:, k] == 0, 1.0, codes[:, k])
        codes[:, k] = np.where(np.abs(z) <= tolerance, kept, -np.sign(z))
