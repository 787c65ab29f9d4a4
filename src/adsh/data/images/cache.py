"""Where decoded images are stored: in memory, or on disk as one array that later runs reuse.

A cache on disk is a folder named by a fingerprint of its sources: keys, sizes and times of the files, the size of the
images and how they were resized. It is filled under another name, FOLDER/NAME.part, and renamed when it is complete.
One that a killed run left incomplete is continued from the progress last written.

    images.npy     (n, size, size, 3) uint8; rows of items that cannot be read are 0
    digests.npy    (n, 16) of the pixels as decoded, before they were resized
    cache.json     the fingerprint, how many items are done, and which of them cannot be read
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...errors import FolderError
from ...utils.files import replacing_file
from ..dataset import Dataset
from ..duplicates import Digests
from .decode import Pixels

_FORMAT = 1
_INTERVAL = 10.0  # seconds between two writes of the progress
_PROGRESS = "cache.json"

Bad = dict[int, str]  # by the item's index, why it cannot be read


class Store(Protocol):
    """What `read_through` fills: `images` and `digests` by index."""

    digests: Digests
    done: int  # items that an earlier run has read
    bad: Bad

    @property
    def images(self) -> Pixels | None:
        """Where the images go; None where they are not stored."""

    def mark(self, done: int) -> None:
        """Note that all items before this index are read."""

    def finish(self) -> None:
        """Note that all items are read."""

    def close(self) -> None:
        """Release the store, whether or not all items are read."""


class InMemory:
    """Arrays in memory; with no `size`, the digests alone."""

    def __init__(self, count: int, size: int | None) -> None:
        self.images: Pixels | None = None if size is None else np.zeros((count, size, size, 3), dtype=np.uint8)
        self.digests: Digests = np.zeros((count, 16), dtype=np.uint8)
        self.done, self.bad = 0, Bad()

    def mark(self, done: int) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class OnDisk:
    """Arrays in memory-mapped files, in the folder `fingerprint` below `folder`.

    Args:
        folder: where caches are; created if it is missing.
        fingerprint: of the files and of how they are resized.
        count: the number of images.
        size: the side of each.
    """

    def __init__(self, folder: Path, fingerprint: str, count: int, size: int) -> None:
        self.path, self._part = folder / fingerprint, folder / f"{fingerprint}.part"
        self._fingerprint, self._written = fingerprint, time.monotonic()
        self._shapes = {"images": (count, size, size, 3), "digests": (count, 16)}
        self._lock: BinaryIO | None = None
        self.done, self.bad = 0, Bad()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if self._opened(self.path, "r") and self.done == count:
                return
            self._lock = _locked(folder / f"{fingerprint}.lock")
            if self._opened(self.path, "r") and self.done == count:  # finished by another run just now
                self.close()
                return
            shutil.rmtree(self.path, ignore_errors=True)  # damaged: it has the name of a complete one
            if self._opened(self._part, "r+"):
                return
            shutil.rmtree(self._part, ignore_errors=True)
            self._part.mkdir()
            self.images, self.digests = (create_npy(self._part / f"{name}.npy", np.uint8, shape)
                                         for name, shape in self._shapes.items())  # fmt: skip
        except OSError as problem:
            self.close()
            if isinstance(problem, FolderError):
                raise
            raise FolderError(f"cannot store images in {folder} ({problem.strerror}): give another --cache") from None

    @property
    def complete(self) -> bool:
        """Whether an earlier run had read everything."""
        return self._lock is None

    def mark(self, done: int) -> None:
        """Note that all items before this index are read; from time to time this is saved, after the pixels."""
        if time.monotonic() - self._written > _INTERVAL:
            self._write_progress(done)

    def finish(self) -> None:
        """Rename the complete folder to its final name."""
        if self._lock is not None:
            self._write_progress(len(self.digests))
            try:
                self._part.replace(self.path)
            except OSError as problem:
                raise FolderError(
                    f"cannot rename {self._part} to {self.path.name} ({problem.strerror}): give another --cache"
                ) from None
            self._opened(self.path, "r")
            self.close()

    def close(self) -> None:
        """Release the lock; what is done stays."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _opened(self, folder: Path, mode: Any) -> bool:
        """Open the arrays of a folder, and set `done` and `bad`; return whether they are there and fit."""
        try:
            progress = json.loads((folder / _PROGRESS).read_text(encoding="utf-8"))
            arrays = [np.load(folder / f"{name}.npy", mmap_mode=mode, allow_pickle=False) for name in self._shapes]
            fits = all(a.shape == s and a.dtype == np.uint8 for a, s in zip(arrays, self._shapes.values(), strict=True))
            if progress["fingerprint"] != self._fingerprint or not fits:
                return False
            self.done = int(progress["done"])
            self.bad = {int(at): str(reason) for at, reason in progress["bad"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
            return False
        self.images, self.digests = arrays
        return True

    def _write_progress(self, done: int) -> None:
        for array in (self.images, self.digests):
            if isinstance(array, np.memmap):
                array.flush()
        bad = {str(at): reason for at, reason in self.bad.items() if at < done}
        with replacing_file(self._part / _PROGRESS) as file:
            file.write(json.dumps({"fingerprint": self._fingerprint, "done": done, "bad": bad}).encode())
        self._written = time.monotonic()


def create_npy(path: Path, kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Create a memory-mapped .npy and reserve its disk space, so that a full disk is an error now.

    Args:
        path: the file to write.
        kind: the type of the values.
        shape: of the array.

    Returns:
        The array, all 0.
    """
    array = npy.open_memmap(path, "w+", kind, shape)
    if hasattr(os, "posix_fallocate") and array.nbytes:
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def _locked(path: Path) -> BinaryIO:
    """Lock that file until this process ends, however it ends. Raises where another process has the lock."""
    file = path.open("wb")
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise FolderError(
                f"{path.with_suffix('')} is being filled by another run: wait for it, or give another --cache"
            ) from None
    return file


def fingerprint_of_files(dataset: Dataset, *how: object) -> str | None:
    """Return a name for these files resized in this way; None for a source that is not of files."""
    if dataset.root is None:
        return None
    how = (*how, dataset.variant) if dataset.variant else how
    digest = blake2b(repr((_FORMAT, str(dataset.root.absolute()), how)).encode(), digest_size=16)
    stamps = np.zeros((len(dataset), 2), dtype=np.int64)
    for at, key in enumerate(dataset.keys):
        digest.update(f"{key}\0".encode(errors="surrogatepass"))
        with suppress(OSError, ValueError):  # a missing file is found when it is read
            status = os.stat(os.path.join(dataset.root, key))
            stamps[at] = status.st_size, status.st_mtime_ns
    digest.update(stamps.data)
    return digest.hexdigest()


def needed_bytes(count: int, size: int) -> int:
    """Return the bytes that a cache of `count` images takes."""
    return count * size * size * 3
