"""Boosted trees as hash functions: one ensemble per bit, as in FastH, LFH and COSDISH (200 trees of depth 4)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import MissingExtraError
from ..arrays import Signs

_FEATURES = 128  # that a tree may split on, drawn for each tree, as in FastH: faster on wide features, and no worse


class Trees:
    """One ensemble per bit, or a constant for a bit that all training points share."""

    kind: ClassVar[str] = "trees"

    def __init__(self, boosters: list[Any], width: int) -> None:
        self.boosters, self.width = boosters, width  # per bit, a lightgbm Booster or +1.0/-1.0

    def outputs(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return (n, c) the log-odds of each bit."""

        def predict(booster: Any) -> NDArray[np.float64]:
            if isinstance(booster, float):
                return np.full(len(X), booster)
            return np.asarray(booster.predict(X, raw_score=True, num_threads=1), dtype=np.float64)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return np.stack(list(pool.map(predict, self.boosters)), axis=1)

    @classmethod
    def concatenate(cls, parts: Sequence[Trees]) -> Trees:
        """Return one function with the bits of all parts, in order."""
        return cls([booster for part in parts for booster in part.boosters], parts[0].width)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is saved of it: each ensemble in lightgbm's text format, as bytes."""
        texts = [str(b) if isinstance(b, float) else b.model_to_string() for b in self.boosters]
        saved = {f"bit_{k:04}": np.frombuffer(text.encode(), dtype=np.uint8) for k, text in enumerate(texts)}
        return saved | {"width": np.array([self.width])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Trees:
        """Return the function that was saved."""
        lightgbm = load_lightgbm()
        texts = [arrays[name].tobytes().decode() for name in sorted(arrays) if name != "width"]
        constants = {"1.0": 1.0, "-1.0": -1.0}
        boosters = [constants[t] if t in constants else lightgbm.Booster(model_str=t) for t in texts]
        return cls(boosters, int(arrays["width"][0]))


class TreeFitter:
    """Fit trees to bits of the same points; the bins of the features are computed once.

    Args:
        X: (n, d) features of the points.
        trees: How many trees there are per bit.
        depth: Of each tree, at most.
        seed: Of lightgbm's random choices.
    """

    def __init__(self, X: NDArray[np.float32], *, trees: int, depth: int, seed: int) -> None:
        self._lightgbm, self._X, self._trees = load_lightgbm(), X, trees
        self._settings = {
            "objective": "binary",
            "max_depth": depth,
            "num_leaves": 2**depth,
            "learning_rate": 0.1,
            "max_bin": 63,
            "feature_fraction": min(1.0, _FEATURES / X.shape[1]),
            "seed": seed % 2**31,
            "deterministic": True,
            "force_col_wise": True,
            "feature_pre_filter": False,
            "num_threads": 1,  # several threads on one small bit mostly wait
            "verbosity": -1,
        }
        self._binned = self._lightgbm.Dataset(X, params=self._settings).construct()

    def __call__(self, signs: Signs) -> Trees:
        """Fit trees that predict each bit, with one thread per bit and as many bits at a time as there are cores."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return Trees(list(pool.map(self._fit, signs.T)), self._X.shape[1])

    def _fit(self, bit: NDArray[np.int8]) -> Any:
        if (bit == bit[0]).all():
            return float(bit[0])
        label = (bit > 0).astype(np.float32)
        data = self._lightgbm.Dataset(self._X, label=label, reference=self._binned, params=self._settings)
        return self._lightgbm.train(self._settings, data, num_boost_round=self._trees)


def load_lightgbm() -> Any:
    """Return the module. Raises MissingExtraError with the install command."""
    try:
        import lightgbm
    except ImportError:
        raise MissingExtraError(
            "boosted trees need lightgbm: pip install 'adsh[baselines]', or choose hash_function='ridge'"
        ) from None
    return lightgbm
