"""Eq. (9): the codes of all rows, bit after bit, in closed form."""

from __future__ import annotations

import numpy as np

from .similarity import Floats


def zero_tolerance(bits: int, samples: int) -> float:
    """Return how small an argument of the sign counts as 0.

    r makes S sum to zero, so with saturated outputs the argument often is 0 exactly, up to the rounding
    of sums as large as 2 c m. Without a tolerance, the order of summation would decide the bit.
    """
    return 1e-9 * 2 * bits * samples


def sweep(codes: Floats, gram: Floats, linear: Floats, tolerance: float) -> Floats:
    """Update all codes in place by one pass of eq. (9) over the bits.

        v_k = -sign(2 v_-k . (U'_-k U_k) + Q_k)

    sign(0) keeps the bit, or gives +1 where there is none. The arguments of all signs come from one product; a bit that
    changes then updates the arguments of its row's later bits. At first most bits change, and all rows are updated
    together; later few do, and only their rows are. O(rows c^2) at most.

    Args:
        codes: (rows, c) of +1/-1, or 0 before the first pass.
        gram: (c, c) U'U.
        linear: (rows, c) Q.
        tolerance: how small an argument counts as 0.

    Returns:
        (rows, c) the arguments of the signs.
    """
    coupling = 2.0 * gram
    np.fill_diagonal(coupling, 0.0)
    arguments = np.ascontiguousarray((codes @ coupling + linear).T)  # (c, rows)
    bits = codes.T  # (c, rows)  a view
    after = minus_sign(arguments, bits, tolerance)
    changes = after != bits
    changed_bits = np.count_nonzero(changes)
    for k in range(len(bits) if changed_bits else 0):
        if 2 * changed_bits > changes.size:
            after[k] = minus_sign(arguments[k], bits[k], tolerance)
            arguments[k + 1 :] += np.outer(coupling[k + 1 :, k], after[k] - bits[k])
        elif len(changed := np.flatnonzero(changes[k])):
            later = slice(k + 1, None)
            arguments[later, changed] += np.outer(coupling[later, k], after[k, changed] - bits[k, changed])
            after[later, changed] = minus_sign(arguments[later, changed], bits[later, changed], tolerance)
            changes[later, changed] = after[later, changed] != bits[later, changed]
    bits[:] = after
    return arguments.T


def minus_sign(arguments: Floats, before: Floats, tolerance: float) -> Floats:
    """Return -sign of the arguments; where that is 0, the bit `before`, or +1 where there was none."""
    bits: Floats = np.where(np.abs(arguments) <= tolerance, np.where(before == 0, 1.0, before), -np.sign(arguments))
    return bits
