"""Discrete cyclic coordinate descent: codes bit by bit, each bit exact with the others fixed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Signs

_ROUNDING = 1e-6  # of the largest value: within it a bit keeps its value, so that equal points stay equal


def minimize_codes(signs: Signs, target: Floats, gram: NDArray[np.float64], sweeps: int) -> Signs:
    """Lower tr(B gram B') - 2 tr(B' target) over the codes B.

    Args:
        signs: (n, c) the codes to start from; a bit whose two values are equally good keeps its value.
        target: (n, c).
        gram: (c, c) symmetric.
        sweeps: At most how often to pass over the bits; fewer where no bit changes. A sweep costs O(n c^2).

    Returns:
        (n, c) codes whose objective is at most that of `signs`.
    """
    codes = signs.astype(np.float32)  # (n, c)
    off_diagonal = (gram - np.diag(np.diag(gram))).astype(np.float32)  # b_k^2 is 1 whatever b_k
    for _ in range(sweeps):
        changed = False
        for k in range(codes.shape[1]):
            linear = target[:, k] - codes @ off_diagonal[:, k]  # (n,)
            bit = np.where(linear >= 0, np.float32(1), np.float32(-1))
            bit = np.where(np.abs(linear) <= _ROUNDING * np.abs(linear).max(initial=0), codes[:, k], bit)
            changed |= bool((bit != codes[:, k]).any())
            codes[:, k] = bit
        if not changed:
            break
    return codes.astype(np.int8)
