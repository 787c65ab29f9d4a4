"""Read files that somebody else wrote: only regular ones, not endless ones, and no deeper than can be parsed."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from ..errors import FolderError

MOST_TEXT = 64 << 20  # bytes of a JSON or TOML file that describes something


def regular_file(path: str, flags: int) -> int:
    """Open a file for `open(path, opener=regular_file)`; raise for a pipe or device, which might never end."""
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        check_regular(path, os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_regular(path: str | Path, found: os.stat_result | None = None) -> None:
    """Raise if something exists here that is no regular file.

    Args:
        path: where it is.
        found: what `os.stat` says of it; found out now by default.

    Raises:
        IsADirectoryError: it is a folder.
        FolderError: it is a pipe, a device or a socket.
    """
    if found is None:
        try:
            found = os.stat(path)
        except OSError:
            return  # whoever opens it says what is wrong
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise FolderError(f"{path} is a pipe or a device: give a regular file")


def read_text(path: Path, most: int = MOST_TEXT) -> str:
    """Return the text of a regular file in UTF-8; raise ValueError if it has more than `most` bytes."""
    with open(path, "rb", opener=regular_file) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return data.decode("utf-8")


def parse_json(text: str | bytes) -> Any:
    """Return what JSON says; raise ValueError if it is none, or nested too deeply to be parsed."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: Path) -> Any:
    """Return what a JSON file says; raise OSError or ValueError if it cannot be read."""
    return parse_json(read_text(path))
