"""Write files and folders atomically: completely, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import FolderError, InputError, first_line
from .reading import read_text


def _previous(folder: Path) -> Path:
    return folder.parent / f".{folder.name}.previous"


def check_writable(folder: Path, needed_bytes: int) -> None:
    """Raise where `folder` could not be created or replaced: better before hours of training than after."""
    folder = folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"{folder} is a file: give a folder to save to")
    if folder == Path.cwd() or os.path.ismount(folder):
        raise FolderError(f"{folder} is the working directory or a disk's root: give a folder below it")
    free = shutil.disk_usage(_writable_parent(folder)).free
    if free < needed_bytes:
        raise FolderError(
            f"not enough space for {folder}: {needed_bytes / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB free; "
            "free some, or choose another folder"
        )


def recover(folder: Path) -> None:
    """Finish the replacement of a folder that a crash interrupted between the two renames, or just after them."""
    folder = folder.resolve()
    previous = _previous(folder)
    if previous.exists():
        if folder.exists():
            _take_over(previous, folder)
        else:
            previous.rename(folder)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a new folder to fill, which replaces `folder` when the block ends without an error.

    A crash at any moment leaves the old folder or the new one: between the two renames the old one has the
    name that `find_whole` looks for. Files that the new folder does not hold are kept.
    """
    folder = folder.resolve()
    new, previous = folder.parent / f".{folder.name}.new", _previous(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        recover(folder)
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        yield new
        for path in (*new.iterdir(), new):
            _sync(path)
        if folder.exists():
            folder.rename(previous)
        try:
            new.rename(folder)
        except OSError:
            if previous.exists():
                previous.rename(folder)
            raise
        _sync(folder.parent)
        if previous.exists():
            _take_over(previous, folder)
    except OSError as problem:
        if isinstance(problem, FolderError):
            raise
        raise FolderError(f"cannot write {folder}: {_reason(problem)}; what was there before is kept") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def check_parent(path: Path) -> None:
    """Raise where a file of this name could not be written."""
    if path.is_dir():
        raise FolderError(f"{path} is a folder: give the name of a file")
    _writable_parent(path.resolve())


def _writable_parent(path: Path) -> Path:
    """Return the nearest parent that exists, after a file could be created in it."""
    parent = next(parent for parent in path.parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as problem:
        raise FolderError(f"cannot write to {parent}: {_reason(problem)}; choose another folder") from None
    return parent


@contextmanager
def replacing_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file, open for writing, which replaces `path` when the block ends without an error."""
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        _sync(path.parent)
    except OSError as problem:
        raise FolderError(f"cannot write {path}: {_reason(problem)}") from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _take_over(previous: Path, folder: Path) -> None:
    """Move into `folder` what only the previous folder holds, and delete the previous one."""
    for path in previous.iterdir():
        if not (folder / path.name).exists():
            path.rename(folder / path.name)
    shutil.rmtree(previous)


def find_whole(folder: Path) -> Path:
    """Return where the last complete version of `folder` is."""
    folder = folder.resolve()
    return folder if folder.exists() or not _previous(folder).exists() else _previous(folder)


def find_file(folder: Path, name: str) -> Path:
    """Return where a file of `folder` is, even between the two renames of a save; its path in the folder if nowhere."""
    folder = folder.resolve()
    previous = _previous(folder) / name
    return previous if previous.exists() and not (folder / name).exists() else folder / name


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds. Raises one line that says why it cannot be read."""
    try:
        return tomllib.loads(read_text(path))
    except OSError as problem:
        raise FolderError(f"cannot read {path}: {(problem.strerror or str(problem)).lower()}") from None
    except ValueError as problem:  # also of dates that no calendar has
        raise InputError(f"{path} is not TOML: {first_line(problem)}") from None
    except RecursionError:
        raise InputError(f"{path} is not TOML: it is nested too deeply") from None


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _reason(problem: OSError) -> str:
    if problem.errno == errno.ENOSPC:
        return "no space is left on the disk"
    return (problem.strerror or str(problem)).lower()
