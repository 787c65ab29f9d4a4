"""What the last update of the codes leaves: enough to compute codes for label sets that come after training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .similarity import Floats, Indices


@dataclass(frozen=True)
class LastUpdate:
    """What codes for new label sets are computed from after training: see `NewLabels`."""

    gram: Floats  # (c, c)  U'U
    label_sets: Indices  # (k,)    of the sampled queries
    sums: Floats  # (k, c)  sums of u_i by label set, times the target
    ratio: float
    samples: int

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the values as arrays, by the names they are saved under."""
        return {f"last.{name}": np.atleast_1d(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> LastUpdate | None:
        """Return the values that `arrays` returned; None where they are not among these."""
        if "last.gram" not in arrays:
            return None
        gram, label_sets, sums = (arrays[f"last.{name}"] for name in ("gram", "label_sets", "sums"))
        return cls(gram, label_sets, sums, float(arrays["last.ratio"][0]), int(arrays["last.samples"][0]))
