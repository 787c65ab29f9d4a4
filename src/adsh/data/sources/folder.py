"""A folder with a sub-folder for each class. Files may lie deeper; the first sub-folder is the class."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import numpy as np

from ...errors import AdshWarning, FolderError, InputError
from ...labels import LabelSets, smallest_unsigned
from ..images.decode import SUFFIXES
from ..images.files import ImageFiles, existing_folder


def open_folder(root: Path, name: str | None = None, without: Collection[str] = ()) -> ImageFiles:
    """Open the images below `root`, in the order of their relative paths, which are the keys.

    Classes are the sub-folders that hold an image, sorted. Images in `root` itself have no label; without any
    sub-folder, no image has. Other files are left out, with a warning.

    Args:
        root: the folder.
        name: of the source; that of the folder unless given.
        without: sub-folders that are left out.

    Returns:
        The images.
    """
    name = name or root.resolve().name
    others: Counter[str] = Counter()
    keys = list_images(existing_folder(root, "a sub-folder a class"), others)
    keys = [key for key in keys if key.split("/", 1)[0] not in without] if without else keys
    if not keys:
        raise InputError(f"{root} holds no image ({', '.join(SUFFIXES)}): give a folder with a sub-folder a class")
    if others:
        counted = ", ".join(f"{count:,} {ending or 'without an ending'}" for ending, count in others.most_common(5))
        warnings.warn(f"left out of {root}, as they are no images: {counted}", AdshWarning, stacklevel=2)
    classes = sorted({key.split("/", 1)[0] for key in keys if "/" in key})
    if not classes:
        return ImageFiles(root, keys, None, name=name)
    number = {name: i for i, name in enumerate(classes)}
    unlabelled = len(classes)  # the label set of images in `root` itself, which holds no tag
    ids = np.array([number[key.split("/", 1)[0]] if "/" in key else unlabelled for key in keys])
    sets = [[name] for name in classes] + ([[]] if unlabelled in ids else [])
    labels = LabelSets(ids.astype(smallest_unsigned(len(sets))), sets)
    return ImageFiles(root, keys, labels, classes=classes, name=name)


def list_images(root: Path, others: Counter[str] | None = None) -> list[str]:
    """Return the relative paths, with /, of all image files below a folder, sorted. Hidden files are left out.

    Files with other endings are counted in `others`, by ending.
    """
    found: list[str] = []
    seen: set[tuple[int, int]] = set()  # folders visited, so that a link to a parent does not loop for ever
    waiting = [""]
    while waiting:
        below = waiting.pop()
        folder = os.path.join(root, below)
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    ending = os.path.splitext(entry.name)[1].lower()
                    if ending in _SUFFIXES and entry.is_file():
                        found.append(below + entry.name)
                    elif entry.is_dir():
                        waiting.append(f"{below}{entry.name}/")
                    elif others is not None:
                        others[ending] += 1
        except OSError as problem:
            raise FolderError(f"{folder} cannot be listed: {problem.strerror}") from None
    return sorted(found)


_SUFFIXES = frozenset(SUFFIXES)
