"""The hash functions that methods on features learn, by the kind that a saved one names."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats
from .solvers.kernel import Kernel
from .solvers.ridge import Linear
from .solvers.trees import Trees


class HashFunction(Protocol):
    """A function that encodes any point: bit k is 1 where output k is not negative."""

    width: int  # features of a point

    @property
    def kind(self) -> str:
        """The name of its class in a saved model."""

    def outputs(self, X: NDArray[np.float32]) -> Floats:
        """Return (n, c) real outputs of (n, d) features."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, to be saved; `from_arrays` of the class restores it."""


_CLASSES: dict[str, type[Linear] | type[Kernel] | type[Trees]] = {cls.kind: cls for cls in (Linear, Kernel, Trees)}


def function_from_arrays(kind: str, arrays: dict[str, NDArray[Any]]) -> HashFunction:
    """Return the hash function of this kind whose `arrays` were saved."""
    return _CLASSES[kind].from_arrays(arrays)
