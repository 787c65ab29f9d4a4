"""Open a source by name or path: `open_source("cifar10")`, `open_source("photos/")`, `open_source("list.csv")`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ...errors import FolderError, InputError
from ...utils.urls import is_address
from ..arrays import open_arrays
from ..dataset import Dataset
from ..tables import SUFFIXES as TABLES
from ..tables import open_table_file
from . import manifest
from .caltech101 import is_caltech101, open_caltech101
from .cifar10 import is_cifar10, open_cifar10
from .coco import open_coco
from .coco17 import open_coco17
from .cub200 import is_cub200, open_cub200, open_cub200_boxes
from .digits import open_digits
from .folder import open_folder
from .list_file import open_list
from .nuswide import open_nuswide
from .remote import open_address
from .shards import is_shards, open_shards
from .synthetic import open_synthetic

ROOT = "ADSH_DATA"  # the environment variable for the folder of the named sources

_ROOTED: dict[str, Callable[[Path], Dataset]] = {
    "caltech101": open_caltech101,
    "cifar10": open_cifar10,
    "coco": open_coco,
    "coco17": open_coco17,
    "cub200": open_cub200,
    "cub200_boxes": open_cub200_boxes,
    "nuswide": open_nuswide,
}
_FOLDERS = {"cub200_boxes": "cub200"}  # of sources that share one
_RECOGNISED: tuple[tuple[Callable[[Path], bool], Callable[[Path], Dataset]], ...] = (
    (is_cifar10, open_cifar10),
    (is_caltech101, open_caltech101),
    (is_cub200, open_cub200),
)  # by what their folders hold
NAMED = ("digits", *_ROOTED, "synthetic")
_PATHS = (
    "a folder with a sub-folder a class, a .csv, .tsv, .jsonl or .txt list, a .npy or .npz, a .parquet, a WebDataset "
    ".tar, an address such as s3://, or CIFAR-10's .tar.gz"
)


def open_source(source: str | Path, *, root: str | Path | None = None, labels: str | Path | None = None) -> Dataset:
    """Open the dataset of that name, or at that path.

    Args:
        source: one of `NAMED`, or the path of a folder, a list, an array file or an archive.
        root: the folder of a named source, by default $ADSH_DATA/SOURCE; for a list, what its paths are relative to.
        labels: a .npy of labels, for an array file.

    Returns:
        The dataset, with its labels if it has any.

    Raises:
        AdshError: there is no such source, or it cannot be read.
    """
    name = str(source)
    at = None if root is None else Path(root)
    path = Path(source)
    suffix = path.suffix.lower()
    if labels is not None and suffix not in (".npy", ".npz"):
        raise InputError(f"labels={str(labels)!r} goes with a .npy or .npz: {name} has its own labels")
    if name == "digits":
        return open_digits()
    if name == "synthetic":
        return open_synthetic()
    if is_address(name):
        return open_address(name)
    if name in _ROOTED:
        return _ROOTED[name](source_root(name, at))
    if suffix in (".npy", ".npz"):
        return open_arrays(path, None if labels is None else Path(labels))
    return _open_path(path, at)


def _open_path(path: Path, root: Path | None) -> Dataset:
    """Open a list, a table, shards, a folder, or an archive.

    Args:
        path: where it is.
        root: what the paths in a list or a table are relative to.

    Returns:
        The dataset.
    """
    suffix = path.suffix.lower()
    if suffix in manifest.SUFFIXES:
        return manifest.open_manifest(path, root)
    if is_shards(str(path)):
        return open_shards(str(path))
    if not path.exists():
        raise InputError(f"{str(path)!r} is neither a source nor a path: give one of {', '.join(NAMED)}, or {_PATHS}")
    for is_its_folder, open_it in _RECOGNISED:
        if is_its_folder(path):
            return open_it(path)
    if suffix == ".txt":
        return open_list(path, root)
    if suffix in TABLES:
        return open_table_file(str(path), root)
    if path.is_dir():
        return open_folder(path)
    raise InputError(f"{str(path)!r} is a file of an unknown kind: give {_PATHS}")


def source_root(name: str, root: Path | None = None) -> Path:
    """Return the folder of a named source: `root`, or its folder in $ADSH_DATA."""
    if root is not None:
        return root
    base = os.environ.get(ROOT)
    if not base:
        raise FolderError(f"{name} needs a root: give root= (--root) its folder, or set ${ROOT} to the folder above")
    return Path(base) / _FOLDERS.get(name, name)
