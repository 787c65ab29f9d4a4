"""`nuswide`: NUS-WIDE in its published layout, with the most frequent of its 81 concepts as labels.

    ImageList/Imagelist.txt                   actor\\0001_2124494179.jpg, an image a line
    Groundtruth/AllLabels/Labels_airport.txt  0 or 1 a line, in the same order; 81 such files
    Flickr/actor/0001_2124494179.jpg          the images; images/ or the root itself serve as well, with or
                                              without the sub-folders

The 21 most frequent concepts are counted over the whole list, whether or not the files are there, so that a copy
that lacks some images still has the usual labels. Images without any of them are left out: 195,834 of 269,648 remain.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import FolderError, InputError
from ...labels import LabelSets
from ..images.files import ImageFiles, existing_folder, without_missing

CONCEPTS, MOST_FREQUENT = 81, 21
_PROBED = 2000  # listed images looked for to see which folder they are in


def open_nuswide(root: Path, most: int = MOST_FREQUENT) -> ImageFiles:
    """Open the images with one of the `most` most frequent concepts; missing files are left out with a warning."""
    existing_folder(root, "NUS-WIDE's ImageList and Groundtruth")
    listed = [line.replace("\\", "/") for line in _lines(_find(root, "ImageList", "Imagelist.txt"))]
    concepts, hot = _groundtruth(root, len(listed))
    counts = hot.sum(axis=0)
    picked = np.sort(np.argsort(-counts, kind="stable")[:most])  # by count; back in the order of their names
    has_one = np.flatnonzero(hot[:, picked].any(axis=1))
    if not len(has_one):
        raise InputError(f"{root}: no image has any concept: the files in Groundtruth/AllLabels hold no 1")
    classes = [concepts[i] for i in picked]
    labels = LabelSets.of(hot[np.ix_(has_one, picked)]).with_names(classes)
    folder, flat = _images_in(root, [listed[i] for i in has_one[:_PROBED].tolist()])
    keys = [listed[i].rsplit("/", 1)[-1] if flat else listed[i] for i in has_one.tolist()]
    return without_missing(ImageFiles(folder, keys, labels, classes=classes, name="nuswide"))


def _groundtruth(root: Path, images: int) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the names of the concepts, sorted, and (images, concepts), which image has which."""
    folder = _find(root, "Groundtruth", "AllLabels")
    files = sorted(folder.glob("Labels_*.txt"))
    if len(files) != CONCEPTS:
        raise InputError(f"{folder} holds {len(files)} files Labels_CONCEPT.txt, not {CONCEPTS}: unpack all of them")
    hot = np.empty((images, len(files)), dtype=bool)
    for column, file in enumerate(files):
        values = np.frombuffer(b"".join(file.read_bytes().split()), dtype=np.uint8) - ord("0")
        if len(values) != images or values.max(initial=0) > 1:
            raise InputError(
                f"{file} holds {len(values):,} values, and the image list {images:,} images: it needs 0 or 1 for each"
            )
        hot[:, column] = values
    return [file.stem.removeprefix("Labels_") for file in files], hot


def _images_in(root: Path, probed: list[str]) -> tuple[Path, bool]:
    """Return the folder that holds most of these images, and whether they lie there without their sub-folders."""
    best, found = (root / "Flickr", False), 0
    for folder in (root / "Flickr", root / "images", root / "Images", root):
        for flat in (False, True):
            count = sum((folder / (key.rsplit("/", 1)[-1] if flat else key)).is_file() for key in probed)
            if count > found:
                best, found = (folder, flat), count
    return best


def _find(root: Path, *parts: str) -> Path:
    """Return a path below `root` whatever its capitals are: copies of the dataset differ in them."""
    folder = root
    for part in parts:
        matches = [p for p in folder.iterdir() if p.name.lower() == part.lower()] if folder.is_dir() else []
        if not matches:
            raise FolderError(f"{root} has no {'/'.join(parts)}: give the folder of NUS-WIDE as published")
        folder = matches[0]
    return folder


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise FolderError(f"{path} cannot be read as text ({type(problem).__name__}): get it again") from None
    return [line.strip() for line in text.splitlines() if line.strip()]
