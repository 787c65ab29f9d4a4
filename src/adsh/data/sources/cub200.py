"""`cub200`: CUB-200-2011 as it unpacks, 200 species of birds.

    CUB_200_2011/images.txt               1 001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg
    CUB_200_2011/image_class_labels.txt   1 1
    CUB_200_2011/classes.txt              1 001.Black_footed_Albatross
    CUB_200_2011/train_test_split.txt     1 0: 1 for the published training part, 0 for the test part; may be missing
    CUB_200_2011/bounding_boxes.txt       1 60.0 27.0 325.0 304.0: x, y, width, height; for `cub200_boxes` alone
    CUB_200_2011/images/                  the images

The published test part comes last, for the protocol `published`. `cub200_boxes` crops each image to its bird.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import FolderError, InputError, first_line
from ...labels import LabelSets
from ...utils.reading import regular_file
from ..images.decode import Pixels
from ..images.files import ImageFiles, existing_folder, without_missing

FOLDER, IMAGES, LABELS = "CUB_200_2011", "images.txt", "image_class_labels.txt"

T = TypeVar("T")


class CroppedImages(ImageFiles):
    """Image files, each cropped to a box (x, y, width, height) in pixels."""

    variant = "boxes"
    boxes: NDArray[np.float64]  # (n, 4)

    def __getitem__(self, index: int) -> Pixels:
        pixels = super().__getitem__(index)
        x, y, width, height = self.boxes[index]
        rows = slice(max(int(y), 0), max(round(y + height), int(y) + 1))
        columns = slice(max(int(x), 0), max(round(x + width), int(x) + 1))
        cropped = pixels[rows, columns]
        return cropped if cropped.size else pixels


def is_cub200(path: Path) -> bool:
    """Return whether a folder holds CUB-200-2011 as it unpacks, or is its inner folder."""
    return any((folder / IMAGES).is_file() and (folder / LABELS).is_file() for folder in (path / FOLDER, path))


def open_cub200(root: Path) -> ImageFiles:
    """Open the images, those of the published test part last; missing files are left out with a warning."""
    folder, keys, labels, test_from = _listed(root)
    return without_missing(
        ImageFiles(folder / "images", keys, labels, classes=_names(labels), name="cub200", test_from=test_from)
    )


def open_cub200_boxes(root: Path) -> CroppedImages:
    """Open the images cropped to their bounding boxes; all files must be there."""
    folder, keys, labels, test_from = _listed(root)
    boxes = _by_number(folder / "bounding_boxes.txt", _box)
    numbers = {key: number for number, key in _by_number(folder / IMAGES, str).items()}
    absent = [key for key in keys if numbers[key] not in boxes]
    if absent:
        raise InputError(f"{folder / 'bounding_boxes.txt'} has no box of {absent[0]}: get the file again")
    dataset = CroppedImages(
        folder / "images", keys, labels, classes=_names(labels), name="cub200_boxes", test_from=test_from
    )
    dataset.boxes = np.array([boxes[numbers[key]] for key in keys])
    return dataset


def _listed(root: Path) -> tuple[Path, list[str], LabelSets, int | None]:
    """Return the folder, the keys of the images, their labels, and where the published test part starts."""
    existing_folder(root, FOLDER)
    folder = root / FOLDER if (root / FOLDER / IMAGES).is_file() else root
    images = _by_number(folder / IMAGES, str)
    class_of = _by_number(folder / LABELS, int)
    path = folder / "classes.txt"
    names = _by_number(path, str) if path.exists() else {}
    unlabelled = [number for number in images if number not in class_of]
    if unlabelled:
        raise InputError(f"{folder / LABELS} has no class of image {unlabelled[0]}: get the file again")
    path = folder / "train_test_split.txt"
    in_training = _by_number(path, int) if path.exists() else {}
    order = sorted(images, key=lambda number: (1 - in_training.get(number, 1), number))
    test_from = sum(in_training.get(number, 1) for number in order) if in_training else None
    species = [_species(names.get(class_of[number], images[number].split("/")[0])) for number in order]
    return folder, [images[number] for number in order], LabelSets.of(species), test_from


def _names(labels: LabelSets) -> list[str]:
    return [str(name) for name in labels.names]


def _species(name: str) -> str:
    """Return Black_footed_Albatross for 001.Black_footed_Albatross."""
    number, _, species = name.partition(".")
    return species if number.isdecimal() and species else name


def _box(text: str) -> tuple[float, ...]:
    x, y, width, height = map(float, text.split())
    return x, y, width, height


def _by_number(path: Path, convert: Callable[[str], T]) -> dict[int, T]:
    """Return what follows the number on each line of a file, by that number."""
    values: dict[int, T] = {}
    try:
        with open(path, encoding="utf-8", opener=regular_file) as file:
            for at, line in enumerate(file, start=1):
                if line.strip():
                    number, _, rest = line.strip().partition(" ")
                    try:
                        values[int(number)] = convert(rest)
                    except ValueError as problem:
                        raise InputError(
                            f"{path} line {at} is no number and its value ({first_line(problem)}): get the file again"
                        ) from None
    except FileNotFoundError:
        raise FolderError(f"{path} does not exist: give the folder of {FOLDER} as it unpacks") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise FolderError(f"{path} cannot be read ({first_line(problem)}): get it again") from None
    if not values:
        raise InputError(f"{path} is empty: get it again")
    return values
