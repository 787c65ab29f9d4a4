"""Images that lie in files: read and decoded when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import FolderError, InputError
from ..learn.labels import LabelSets
from .dataset import Dataset
from .images import Pixels, decode


class ImageFiles(Dataset):
    """Image files below a folder; a key is a file's path relative to it (absolute paths stay as they are)."""

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
        self.root, self.keys, self.labels = root, keys, labels
        self.classes, self.name, self.test_from = tuple(classes), name, test_from

    def __getitem__(self, index: int) -> Pixels:
        return decode(self.path(index))

    def path(self, index: int) -> Path:
        """Where the image at this index lies."""
        return self.root / self.keys[index]


def existing_folder(path: Path, holds: str) -> Path:
    """`path`, if it is a folder; else an error that says what it should hold."""
    if not path.is_dir():
        state = "is a file" if path.exists() else "does not exist"
        raise FolderError(f"{path} {state}: give the folder that holds {holds}")
    return path
