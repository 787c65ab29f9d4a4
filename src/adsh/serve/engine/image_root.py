"""Read the images of items, from the one folder that the service may show files of."""

from __future__ import annotations

import io
import os
from pathlib import Path, PurePosixPath

from PIL import Image

from ...data.images.decode import SUFFIXES, known_formats
from ...data.images.structure import check_structure
from ...index import Item
from .uploads import FORMATS

_MAX_BYTES = 64 << 20  # of a file to show


def read_image(root: Path, item: Item) -> tuple[bytes, str] | None:
    """Return the bytes and media type of an item's image file; None where it has none below `root`.

    The file is the one in the item's metadata if that lies below the root, or else the key as a path from the root.
    """
    root = root.resolve()
    for name in ((item.metadata or {}).get("file"), item.key):
        path = _below(root, name) if isinstance(name, str) else None
        if path is not None:
            found = _read(path)
            if found is not None:
                return found
    return None


def _below(root: Path, name: str) -> Path | None:
    """Return the file of this name, if it is below the root once every link is followed."""
    name = os.path.realpath(name) if os.path.isabs(name) and "\0" not in name else name  # the root may be a link
    inside = os.path.relpath(name, root) if name.startswith(f"{root}{os.sep}") else name
    if os.path.isabs(inside) or ".." in PurePosixPath(inside).parts or "\\" in inside or "\0" in inside:
        return None
    if not inside.lower().endswith(SUFFIXES):
        return None
    try:
        path = (root / inside).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # missing, a loop of links, or a name that no file can have
        return None
    return path if path.is_relative_to(root) and path.is_file() else None


def _read(path: Path) -> tuple[bytes, str] | None:
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        data = path.read_bytes()
        check_structure(data, "the image")
        with Image.open(io.BytesIO(data), formats=known_formats(FORMATS)) as image:  # reads the header alone
            return data, "image/jpeg" if image.format == "MPO" else Image.MIME[str(image.format)]
    except Exception:  # Pillow raises errors of any class for broken bytes
        return None
