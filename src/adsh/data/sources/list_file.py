"""The list files of deep-hashing repositories: a line is a path and then 0 or 1 for each class.

    images/0001.jpg 0 1 0 0 1
    images/0002.jpg 1 0 0 0 0

With one number a line, it is the class's number. Paths are relative to the list's folder, or to `root`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import FolderError, InputError
from ...labels import LabelSets
from ...utils.reading import regular_file
from ..images.files import ImageFiles
from ..texts import Texts

_DIGITS = 18  # of a class's number


def open_list(path: Path, root: Path | None = None) -> ImageFiles:
    """Open the images that a .txt list names, labelled by column: the classes are named 0, 1, ….

    Missing images are found when they are read.
    """
    keys, rows, width = Texts(), bytearray(), 0
    numbers: list[int] = []
    try:
        with open(path, encoding="utf-8-sig", opener=regular_file) as file:
            for at, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                width = width or _width(line)
                parts = line.rsplit(maxsplit=width) if width else [line]
                values = parts[1:]
                if not width or len(values) != width:
                    raise InputError(
                        f"{path} line {at} is no path followed by {width or 'some'} numbers: {line[:40]!r}"
                    )
                keys.append(parts[0].lstrip())
                if width == 1 and values[0].isdecimal() and len(values[0]) <= _DIGITS:
                    numbers.append(int(values[0]))
                elif width > 1 and set(values) <= {"0", "1"}:
                    rows += "".join(values).encode()
                else:
                    raise InputError(f"{path} line {at} holds {' '.join(values)[:40]!r}: give 0 or 1 for each class")
    except FileNotFoundError:
        raise FolderError(f"{path} does not exist: give the path of a list of images") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text: save it as UTF-8") from None
    except OSError as problem:
        raise FolderError(f"{path} cannot be read: {problem.strerror or problem}") from None
    if not len(keys):
        raise InputError(f"{path} lists no image: a line is a path and then 0 or 1 for each class")
    if width == 1:
        labels = LabelSets.of(np.array(numbers))
    else:
        labels = LabelSets.of(np.frombuffer(bytes(rows), dtype=np.uint8).reshape(-1, width) - ord("0"))
    classes = [str(name) for name in labels.names]
    return ImageFiles(
        path.parent if root is None else root, keys, labels.with_names(classes), classes=classes, name=path.name
    )


def _width(line: str) -> int:
    """Return how many numbers end the line; the path before them may have blanks."""
    parts = line.split()
    return next((i for i, part in enumerate(reversed(parts)) if not part.isdecimal()), len(parts) - 1)
