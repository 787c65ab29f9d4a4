"""Images in files, read and decoded on access."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import AdshWarning, FolderError, InputError
from ...labels import LabelSets
from ..dataset import Dataset
from .decode import Pixels, decode


class ImageFiles(Dataset):
    """Image files below a folder; a key is a file's path relative to it (absolute paths stay as they are).

    Args:
        root: the folder.
        keys: the path of each file.
        labels: of the images; None for unlabelled ones.
        classes: the names of all classes.
        name: what errors call the source.
        test_from: the index at which the published test part starts, if there is one.
    """

    workers = None  # a file is opened, read and closed at once

    def __init__(
        self,
        root: Path,
        keys: Sequence[str],
        labels: LabelSets | None,
        *,
        classes: Sequence[str] = (),
        name: str,
        test_from: int | None = None,
    ) -> None:
        if not len(keys):
            raise InputError(f"{name} holds no image: give at least one")
        if labels is not None and len(labels) != len(keys):
            raise InputError(f"{name} has {len(keys):,} images and {len(labels):,} labels: give one an image")
        self.root: Path = root
        self.keys, self.labels = keys, labels
        self.classes, self.name, self.test_from = tuple(classes), name, test_from

    def __getitem__(self, index: int) -> Pixels:
        return decode(os.path.join(self.root, self.keys[index]))  # no Path: this runs for each image of an epoch

    def file_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the file size of each item, where items are files."""
        sizes = np.full(len(indices), -1, dtype=np.int64)
        for at, index in enumerate(indices.tolist()):
            with suppress(OSError, ValueError):
                sizes[at] = os.stat(os.path.join(self.root, self.keys[index])).st_size
        return sizes

    def path(self, index: int) -> Path:
        """Return the file of the image at this index."""
        return self.root / self.keys[index]


def existing_folder(path: Path, holds: str) -> Path:
    """Return `path` if it is a folder; otherwise raise an error that says what it should hold."""
    if not path.is_dir():
        state = "is a file" if path.exists() else "does not exist"
        raise FolderError(f"{path} {state}: give the folder that holds {holds}")
    return path


def without_missing(dataset: ImageFiles, shown: int = 3) -> ImageFiles:
    """Return the dataset without the images whose files are missing; warn of them, and list them in `missing`."""
    exists = np.fromiter((dataset.path(i).is_file() for i in range(len(dataset))), dtype=bool, count=len(dataset))
    if exists.all():
        return dataset
    missing = [dataset.keys[i] for i in np.flatnonzero(~exists).tolist()]
    examples = ", ".join(missing[:shown]) + (" and others" if len(missing) > shown else "")
    if not exists.any():
        raise FolderError(
            f"{dataset.name}: none of {len(exists):,} images is in {dataset.root} ({examples}): put them there"
        )
    warnings.warn(
        f"{dataset.name}: {len(missing):,} of {len(exists):,} images are not in {dataset.root}, left out: {examples}",
        AdshWarning,
        stacklevel=2,
    )
    at = np.flatnonzero(exists)
    remaining = ImageFiles(
        dataset.root,
        [dataset.keys[i] for i in at.tolist()],
        None if dataset.labels is None else dataset.labels.take(at),
        classes=dataset.classes,
        name=dataset.name,
        test_from=None if dataset.test_from is None else int(exists[: dataset.test_from].sum()),
    )
    remaining.missing = missing
    return remaining
