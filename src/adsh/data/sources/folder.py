"""A folder with a sub-folder for each class. Files may lie deeper; the first sub-folder is the class.

`layout` finds the classes of a folder one too high, and of one that holds the parts of a split.
"""

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
from .layout import TEST, VALIDATION, Layout, find_layout


def open_folder(root: Path, name: str | None = None, without: Collection[str] = ()) -> ImageFiles:
    """Open the images below `root`, in the order of their relative paths, which are the keys.

    Classes are the sub-folders that hold an image, sorted. Images in `root` itself have no label; without any
    sub-folder, no image has. Other files are left out, with a warning; another says where the classes lie
    deeper. Of the parts of a split, the images of the test part come last, for the protocol `published`.

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
    layout = find_layout(keys)
    keys, of_keys, test_from = _test_part_last(keys, layout)
    if layout.note:
        published = "; --protocol published takes those of the test part as queries" * (test_from is not None)
        warnings.warn(f"{root}: {layout.note}{published}", AdshWarning, stacklevel=2)
    if layout.inside:
        warnings.warn(
            f"{root}: folders inside the classes are not told apart: {layout.inside}; for classes by these, give a "
            "list of paths and labels",
            AdshWarning,
            stacklevel=2,
        )
    classes = sorted({name for name in of_keys if name is not None})
    if not classes:
        return ImageFiles(root, keys, None, name=name)
    number: dict[str | None, int] = {name: i for i, name in enumerate(classes)}
    number[None] = len(classes)  # the label set of images outside the classes' folders, which holds no tag
    ids = np.array([number[name] for name in of_keys])
    sets = [[name] for name in classes] + ([[]] if None in of_keys else [])
    labels = LabelSets(ids.astype(smallest_unsigned(len(sets))), sets)
    return ImageFiles(root, keys, labels, classes=classes, name=name, test_from=test_from)


def _test_part_last(keys: list[str], layout: Layout) -> tuple[list[str], list[str | None], int | None]:
    """Return the keys and their classes, those of the labelled test part last, and where that part starts."""
    labelled = [part if name is not None else None for part, name in zip(layout.parts, layout.classes, strict=False)]
    test = next((part for part in (TEST, VALIDATION) if part in labelled), None)
    if test is None:
        return keys, layout.classes, None
    order = sorted(range(len(keys)), key=lambda at: labelled[at] == test)  # stable
    return [keys[at] for at in order], [layout.classes[at] for at in order], len(keys) - labelled.count(test)


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
