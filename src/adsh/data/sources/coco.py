"""`coco`: MS-COCO's images with the categories of the objects in them as labels.

    annotations/instances_train2014.json   (and any other instances_PART.json of the same year)
    train2014/COCO_train2014_000000000009.jpg, or images/train2014/…

An image's labels are the categories of its annotations; images without any annotation are left out. The images of the
training part come first, and those of the validation part are the published test part.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import FolderError, InputError, first_line
from ...labels import LabelSets
from ...utils.reading import regular_file
from ..images.files import ImageFiles, without_missing

_PROBED = 100  # images looked for to see which folder they are in


def open_coco(root: Path) -> ImageFiles:
    """Open COCO from its root folder, all parts together, or from one instances_PART.json in annotations/."""
    files = [root] if root.is_file() else sorted((root / "annotations").glob("instances_*.json"))
    if not files:
        raise FolderError(f"{root} has no annotations/instances_*.json: give the folder that holds annotations")
    years = {"".join(re.findall(r"\d{4}", file.stem)) for file in files}
    if len(years) > 1:  # the same images, split differently
        raise InputError(
            f"{root} has annotations of {' and '.join(sorted(years))}, which share images: "
            f"give the path of one file, such as {files[0]}"
        )
    base = files[0].resolve().parent.parent
    keys: list[str] = []
    rows: list[Any] = []
    categories: dict[int, str] = {}
    sizes: list[int] = []
    for file in files:
        images, pairs, file_categories = _read(file)
        if categories and file_categories != categories:
            raise InputError(f"{file} has other categories than {files[0]}: use annotations of one version")
        categories = file_categories
        part = _part(base, file.stem.removeprefix("instances_"), list(images.values())[:_PROBED])
        column = {number: at for at, number in enumerate(sorted(categories))}
        row = {number: at for at, number in enumerate(images)}
        hot = np.zeros((len(images), len(categories)), dtype=bool)
        try:
            hot[[row[image] for image, _ in pairs], [column[category] for _, category in pairs]] = True
        except (KeyError, TypeError) as problem:
            raise InputError(
                f"{file} has an annotation of the unknown image or category {problem}: get it again"
            ) from None
        used = np.flatnonzero(hot.any(axis=1))
        names = list(images.values())
        keys += [part + names[i] for i in used.tolist()]
        rows.append(hot[used])
        sizes.append(len(used))
    if not keys:
        raise InputError(f"{root}: no image has an annotation: get the annotations again")
    classes = [categories[number] for number in sorted(categories)]
    labels = LabelSets.of(np.concatenate(rows)).with_names(classes)
    is_split = [re.sub(r"\d", "", file.stem) for file in files] == ["instances_train", "instances_val"]
    test_from = sizes[0] if is_split else None
    return without_missing(ImageFiles(base, keys, labels, classes=classes, name="coco", test_from=test_from))


def _read(file: Path) -> tuple[dict[int, str], list[tuple[int, int]], dict[int, str]]:
    """Return images by number, (image, category) of every annotation, and categories by number."""
    try:
        with open(file, encoding="utf-8", opener=regular_file) as stream:
            content = json.load(stream, object_hook=_trimmed)
        images = {image["id"]: image["file_name"] for image in content["images"]}
        categories = {category["id"]: category["name"] for category in content["categories"]}
        pairs = [(image, category) for image, category in content["annotations"]]
        if not all(isinstance(name, str) for name in chain(images.values(), categories.values())):
            raise TypeError("a name is no text")
        sorted(categories)  # raises where numbers and texts are mixed
        return images, pairs, categories
    except OSError as problem:
        raise FolderError(f"{file} cannot be read: {problem.strerror or problem}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise InputError(
            f"{file} is not COCO's instances ({type(problem).__name__}: {first_line(problem)}): "
            "it needs images, annotations and categories"
        ) from None


def _trimmed(value: dict[str, Any]) -> Any:
    """Return an annotation as (image, category): outlines, most of the file, are dropped as soon as they are read."""
    if "image_id" in value and "category_id" in value:
        return value["image_id"], value["category_id"]
    return value


def _part(base: Path, part: str, probed: list[str]) -> str:
    """Return the folder, relative to `base`, that holds most of these images of a part.

    Args:
        base: the folder of the dataset.
        part: the name of the part, such as train2017.
        probed: names of a few of its images.

    Returns:
        The folder, with a slash at its end; "" for `base` itself.
    """
    places = (f"{part}/", f"images/{part}/", "images/", "")
    return max(places, key=lambda place: sum((base / place / name).is_file() for name in probed))
