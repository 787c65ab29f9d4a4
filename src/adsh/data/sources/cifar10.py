"""`cifar10`: 60,000 images of 32 x 32 in 10 classes, in any of its common forms.

    cifar-10-python.tar.gz   or its folder cifar-10-batches-py (data_batch_1 … data_batch_5, test_batch)
    cifar-10-binary.tar.gz   or its folder cifar-10-batches-bin (data_batch_1.bin …, test_batch.bin)
    sheet_0.webp … sheet_5.webp and labels.npy: mosaics of 100 x 100 images, row by row
    a folder of image files  train/airplane/00001.png … and test/…, or airplane/00001.png … alone

All give the same images in the same order: data_batch_1 to 5, then the test batch, which starts at `test_from`.
Image files keep that order where the number in their name is the image's place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...errors import FolderError, InputError, first_line
from ...labels import LabelSets
from ..arrays import ArrayDataset, name_labels
from ..dataset import Dataset
from ..images.decode import Pixels
from ..images.files import ImageFiles
from ..npz import load_npy
from ..reader_pool import in_order, worker_count
from .archives import members
from .batch_pickle import read_batch
from .folder import list_images

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ARCHIVE, FOLDER = "cifar-10-python.tar.gz", "cifar-10-batches-py"
BINARY_ARCHIVE, BINARY_FOLDER = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
PIXELS_SHA256 = "0ac3ab5c78edb36ac68f69e287fd8f957b2d4f820b80e5fa9bd05c810fc0d95d"  # of all images, (60000, 32, 32, 3)
BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
_SHEETS = [f"sheet_{i}.webp" for i in range(6)]
_PARTS = ("train", "test")

Batch = tuple[NDArray[np.uint8], NDArray[np.integer[Any]]]  # images (k, 32, 32, 3), labels (k,)


def open_cifar10(root: Path) -> Dataset:
    """Open CIFAR-10 from a folder that holds one of its forms, or from one of the archives."""
    dataset = _open(root)
    if dataset is None:
        state = "holds none of its forms" if root.exists() else "does not exist"
        raise FolderError(
            f"{root} {state}, so there is no CIFAR-10: put {ARCHIVE} there, or run: adsh data get cifar10 --root {root}"
        )
    return dataset


def is_cifar10(path: Path) -> bool:
    """Whether this path is one of CIFAR-10's published forms."""
    if path.is_file():
        return path.name.endswith((".tar.gz", ".tgz"))
    return any((path / name).is_file() for name in (BATCHES[0], f"{BATCHES[0]}.bin", _SHEETS[0]))


def _open(root: Path) -> Dataset | None:
    if root.is_file():
        return _from_archive(root)
    for folder in (root, root / FOLDER, root / BINARY_FOLDER):
        for suffix, read in (("", _python_batch), (".bin", _binary_batch)):
            if (folder / (BATCHES[0] + suffix)).is_file():
                files = ((name, _bytes(folder / (name + suffix))) for name in BATCHES)
                return _dataset([read(content, str(folder / (name + suffix))) for name, content in files])
    for archive in (ARCHIVE, BINARY_ARCHIVE):
        if (root / archive).is_file():
            return _from_archive(root / archive)
    if (root / _SHEETS[0]).is_file():
        return _from_sheets(root)
    return _from_image_files(root) if root.is_dir() else None


def _from_archive(path: Path) -> Dataset:
    batches: dict[str, Batch] = {}
    for name, content in members(path):
        plain = name.removesuffix(".bin")
        if plain in BATCHES:
            read: Callable[[bytes, str], Batch] = _binary_batch if name.endswith(".bin") else _python_batch
            batches[plain] = read(content, f"{path}: {name}")
    missing = [name for name in BATCHES if name not in batches]
    if missing:
        raise InputError(
            f"{path} lacks {', '.join(missing)}: it is not the archive of CIFAR-10, or incomplete; download it again"
        )
    return _dataset([batches[name] for name in BATCHES])


def _python_batch(content: bytes, name: str) -> Batch:
    batch = read_batch(content, name)
    pixels, labels = batch.get("data"), batch.get("labels")
    if (
        not isinstance(pixels, np.ndarray)
        or pixels.ndim != 2
        or pixels.shape[1] != 3072
        or not isinstance(labels, list)
    ):
        raise InputError(f"{name} holds {', '.join(batch) or 'nothing'}: a batch has data of 3,072 columns, and labels")
    return _images(pixels), np.array(labels, dtype=np.int64)


def _binary_batch(content: bytes, name: str) -> Batch:
    """Read records of a byte of label, then the red, green and blue plane."""
    if not content or len(content) % 3073:
        raise InputError(
            f"{name} has {len(content):,} bytes, no multiple of 3,073: it is incomplete, download it again"
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, 3073)
    return _images(records[:, 1:]), records[:, 0]


def _images(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise FolderError(f"{path} cannot be read ({problem.strerror}): CIFAR-10 needs all six batches") from None


def _from_sheets(root: Path) -> Dataset:
    labels, batches, start = np.asarray(load_npy(root / "labels.npy")), [], 0
    for images in in_order(_tiles, [root / name for name in _SHEETS], worker_count(None)):
        batches.append((images, labels[start : start + len(images)]))
        start += len(images)
    return _dataset(batches)


def _tiles(path: Path) -> Pixels:
    """Return the images of a sheet, row by row."""
    try:
        with Image.open(path) as sheet:
            pixels = np.asarray(sheet.convert("RGB"))
        rows, columns = (side // 32 for side in pixels.shape[:2])
        tiles = pixels.reshape(rows, 32, columns, 32, 3).transpose(0, 2, 1, 3, 4)
    except (OSError, ValueError) as problem:
        raise FolderError(f"{path} is no sheet of 32 x 32 images ({first_line(problem)})") from None
    return tiles.reshape(rows * columns, 32, 32, 3)


def _dataset(batches: Sequence[Batch]) -> ArrayDataset:
    """Join the batches in order, the last of them the test batch."""
    for at, (images, labels) in enumerate(batches):
        if len(images) != len(labels):
            raise InputError(
                f"{BATCHES[at]} has {len(images):,} images and {len(labels):,} labels: download CIFAR-10 again"
            )
    images = np.concatenate([images for images, _ in batches])
    labels = np.concatenate([labels for _, labels in batches])
    test = len(images) - len(batches[-1][0])
    keys = [f"train/{i:05}" for i in range(test)] + [f"test/{i:05}" for i in range(len(images) - test)]
    return ArrayDataset(images, labels, keys=keys, classes=CLASSES, name="cifar10", test_from=test)


def _from_image_files(root: Path) -> Dataset | None:
    """Open class folders, or class folders in train/ and test/. Files are read on access."""
    keys = list_images(root)
    parts = {key.split("/")[0] for key in keys}
    if parts == set(_PARTS):
        placed = [(_PARTS.index(key.split("/")[0]), key) for key in keys]
    else:
        placed = [(0, key) for key in keys]
    classes = [key.split("/")[-2] if "/" in key else "" for key in keys]
    if not keys or not set(classes) <= set(CLASSES):
        return None
    ordered = sorted(zip(placed, classes, strict=True), key=lambda one: (one[0][0], _place(one[0][1]), one[0][1]))
    labels = name_labels(LabelSets.of(np.array([CLASSES.index(name) for _, name in ordered])), CLASSES, "cifar10")
    test = sum(part == 0 for (part, _), _ in ordered)
    if test == len(keys):  # one part: the numbers are the places of the images only if they are distinct
        numbers = {_place(key) for key in keys}
        test_from = 50_000 if len(numbers) == len(keys) == 60_000 else None
    else:
        test_from = test
    ordered_keys = [key for (_, key), _ in ordered]
    return ImageFiles(root, ordered_keys, labels, classes=CLASSES, name="cifar10", test_from=test_from)


def _place(key: str) -> int:
    """Return the number in a file's name; -1 without one."""
    digits = re.search(r"\d+", key.rsplit("/", 1)[-1])
    return int(digits[0]) if digits else -1
