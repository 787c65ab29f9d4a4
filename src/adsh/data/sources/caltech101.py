"""`caltech101`: Caltech-101 as it unpacks, a folder for each category.

    101_ObjectCategories/accordion/image_0001.jpg
    101_ObjectCategories/BACKGROUND_Google/image_0001.jpg     no category: left out
    101_ObjectCategories/Faces_easy/image_0001.jpg            the images of Faces, cropped: left out

100 categories of 31 to 800 images remain.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from ...errors import AdshWarning
from ..images.files import ImageFiles, existing_folder
from .folder import open_folder

FOLDER = "101_ObjectCategories"
LEFT_OUT = ("BACKGROUND_Google", "Faces_easy")


def is_caltech101(path: Path) -> bool:
    """Return whether a folder holds Caltech-101 as it unpacks."""
    return (path / FOLDER).is_dir()


def open_caltech101(root: Path) -> ImageFiles:
    """Open Caltech-101 in `root`, or in `root` itself where that is its folder of categories."""
    places = [root / FOLDER, root / "caltech-101" / FOLDER, root]
    folder = next((place for place in places if place.is_dir()), root)
    existing_folder(folder, FOLDER)
    present = [name for name in LEFT_OUT if (folder / name).is_dir()]
    dataset = open_folder(folder, "caltech101", without=present)
    if present:
        warnings.warn(
            f"caltech101: {' and '.join(present)} are left out, one holds no category and the other the faces again; "
            f"give {folder} as a folder for all",
            AdshWarning,
            stacklevel=2,
        )
    return dataset
