"""A source by name or path: `open_source("digits")`, `open_source("features.npy", labels="labels.npy")`."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from .arrays import open_arrays
from .dataset import Dataset
from .digits import open_digits

NAMED = {"digits": open_digits}


def open_source(source: str | Path, *, root: str | Path | None = None, labels: str | Path | None = None) -> Dataset:
    """The dataset of that name, or at that path. `labels` is a .npy of labels for a file of arrays."""
    if source in NAMED:
        return NAMED[str(source)](None if root is None else Path(root))
    path = Path(source)
    if path.suffix in (".npy", ".npz"):
        return open_arrays(path, None if labels is None else Path(labels))
    names = ", ".join(NAMED)
    raise InputError(f"{str(source)!r} is no source: give one of {names}, or the path of a .npy or .npz file")
