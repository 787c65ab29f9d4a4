"""What coding gives, whichever runtime did it. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..hamming.bits import Codes


@dataclass(frozen=True)
class Coded:
    """Items as a model codes them, one a row."""

    codes: Codes  # (n, bytes) packed
    outputs: NDArray[np.float32]  # (n, bits) real-valued; bit k is 1 where output k is not negative
    vectors: NDArray[np.float32] | None  # (n, d) what the last layer saw; None where the model has none
