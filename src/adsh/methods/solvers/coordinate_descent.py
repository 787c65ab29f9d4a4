"""Discrete cyclic coordinate descent: codes bit by bit, each bit exact with the others fixed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Signs

_NOTHING = 1e-6  # of the largest pull: rounding, by which points that are alike must not part


def descend(signs: Signs, target: Floats, gram: NDArray[np.float64], sweeps: int) -> Signs:
    """Codes of less tr(B gram B') - 2 tr(B' target), from `signs`; a bit whose two values are as good stays.

    At most so many sweeps over the bits, or until no bit changes. O(n c^2) a sweep.
    """
    codes = signs.astype(np.float32)  # (n, c)
    off_diagonal = (gram - np.diag(np.diag(gram))).astype(np.float32)  # b_k^2 is 1 whatever b_k
    for _ in range(sweeps):
        changed = False
        for k in range(codes.shape[1]):
            pull = target[:, k] - codes @ off_diagonal[:, k]  # (n,)
            bit = np.where(pull >= 0, np.float32(1), np.float32(-1))
            bit = np.where(np.abs(pull) <= _NOTHING * np.abs(pull).max(initial=0), codes[:, k], bit)
            changed |= bool((bit != codes[:, k]).any())
            codes[:, k] = bit
        if not changed:
            break
    return codes.astype(np.int8)


def descent_objective(signs: Signs, target: Floats, gram: NDArray[np.float64]) -> float:
    """tr(B gram B') - 2 tr(B' target)."""
    codes = signs.astype(np.float64)
    return float(((codes @ gram) * codes).sum() - 2 * (codes * target).sum())
