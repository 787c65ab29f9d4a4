"""`lfh_decay`, `lfh_decay_d`: latent factor hashing with shrinking steps, so that the likelihood of all pairs settles.

A row takes 1 / (1 + decay t) of the step of `lfh` in round t: part of the way to the maximum of a bound below the
likelihood of the sampled columns, which still rises. The method as published has no such factor.
"""

from __future__ import annotations

from typing import Any

from ..hamming.bits import DEFAULT_BITS
from .lfh import LFH


class LFHDecay(LFH):
    """Latent factor hashing with shrinking steps.

    Args:
        bits: Code length.
        decay: How fast the steps shrink.
        **shared: As of `LFH`.
    """

    name = "lfh_decay"

    def __init__(self, bits: int = DEFAULT_BITS, *, decay: float = 0.5, **shared: Any) -> None:
        super().__init__(bits, decay=decay, **shared)


def build(bits: int, **options: Any) -> LFHDecay:
    """Build `lfh_decay`, or `lfh_decay_d` with `use_full_database`."""
    return LFHDecay(bits, **options)
