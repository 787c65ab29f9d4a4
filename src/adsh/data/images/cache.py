"""Where decoded images are kept: in memory, or on disk as one array that later runs take up again.

A cache on disk is a folder called by a fingerprint of what it was made from: keys, sizes and times of the files, the
size of the images and how they were brought to it. It is filled beside, in FOLDER/NAME.part, and renamed when it is
whole; one that a kill left half filled is gone on with, up to the last mark that was written.

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
from .files import ImageFiles

_FORMAT = 1
_MARKED = 10.0  # seconds between two marks of how far it is
_MARK = "cache.json"

Bad = dict[int, str]  # by the item's index, why it cannot be read


class Store(Protocol):
    """What a reading through fills: `images` and `digests` by index."""

    digests: Digests
    done: int  # items that an earlier run has read already
    bad: Bad

    @property
    def images(self) -> Pixels | None:
        """Where the images go; None where they are not kept."""

    def mark(self, done: int) -> None:
        """All items before this index are read."""

    def finish(self) -> None:
        """All are read."""

    def close(self) -> None:
        """No more is read, all or not."""


class InMemory:
    """Arrays in memory; with no `size`, the digests alone."""

    def __init__(self, count: int, size: int | None) -> None:
        self.images: Pixels | None = None if size is None else np.zeros((count, size, size, 3), dtype=np.uint8)
        self.digests: Digests = np.zeros((count, 16), dtype=np.uint8)
        self.done, self.bad = 0, Bad()

    def mark(self, done: int) -> None:
        """Nothing is kept."""

    def finish(self) -> None:
        """Nothing is to be done."""

    def close(self) -> None:
        """Nothing is to be done."""


class OnDisk:
    """Arrays in files, memory-mapped, in the folder of this fingerprint below `folder`."""

    def __init__(self, folder: Path, fingerprint: str, count: int, size: int) -> None:
        self.path, self._part = folder / fingerprint, folder / f"{fingerprint}.part"
        self._fingerprint, self._marked = fingerprint, time.monotonic()
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
            shutil.rmtree(self.path, ignore_errors=True)  # damaged: it has the name, and is not whole
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
            raise FolderError(f"cannot keep images in {folder} ({problem.strerror}): give another --cache") from None

    @property
    def whole(self) -> bool:
        """Whether everything had been read before."""
        return self._lock is None

    def mark(self, done: int) -> None:
        """All items before this index are read: now and then that is written down, after the pixels are."""
        if time.monotonic() - self._marked > _MARKED:
            self._write_mark(done)

    def finish(self) -> None:
        """The folder gets its name."""
        if self._lock is not None:
            self._write_mark(len(self.digests))
            try:
                self._part.replace(self.path)
            except OSError as problem:
                raise FolderError(f"cannot name {self.path} ({problem.strerror}): give another --cache") from None
            self._opened(self.path, "r")
            self.close()

    def close(self) -> None:
        """Lets others fill it; what is done stays."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _opened(self, folder: Path, mode: Any) -> bool:
        """Whether the arrays are there and fit; `done` and `bad` tell how far they are."""
        try:
            mark = json.loads((folder / _MARK).read_text(encoding="utf-8"))
            held = [np.load(folder / f"{name}.npy", mmap_mode=mode, allow_pickle=False) for name in self._shapes]
            right = all(a.shape == s and a.dtype == np.uint8 for a, s in zip(held, self._shapes.values(), strict=True))
            if mark["fingerprint"] != self._fingerprint or not right:
                return False
            self.done, self.bad = int(mark["done"]), {int(at): str(why) for at, why in mark["bad"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
            return False
        self.images, self.digests = held
        return True

    def _write_mark(self, done: int) -> None:
        for array in (self.images, self.digests):
            if isinstance(array, np.memmap):
                array.flush()
        bad = {str(at): why for at, why in self.bad.items() if at < done}
        with replacing_file(self._part / _MARK) as file:
            file.write(json.dumps({"fingerprint": self._fingerprint, "done": done, "bad": bad}).encode())
        self._marked = time.monotonic()


def create_npy(path: Path, kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """A new .npy, memory-mapped, its room on the disk taken at once: a full one is told now, not by a crash later."""
    array = npy.open_memmap(path, "w+", kind, shape)
    if hasattr(os, "posix_fallocate") and array.nbytes:
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def _locked(path: Path) -> BinaryIO:
    """A lock on that file, which goes with this process however it ends. Raises where another holds it."""
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
    """A name for these files brought to one size in this way; None for a source that is not of files."""
    if not isinstance(dataset, ImageFiles):
        return None
    digest = blake2b(repr((_FORMAT, str(dataset.root.absolute()), how)).encode(), digest_size=16)
    stamps = np.zeros((len(dataset), 2), dtype=np.int64)
    for at, key in enumerate(dataset.keys):
        digest.update(f"{key}\0".encode(errors="surrogatepass"))
        with suppress(OSError, ValueError):  # one that is not there is found when it is read
            held = os.stat(os.path.join(dataset.root, key))
            stamps[at] = held.st_size, held.st_mtime_ns
    digest.update(stamps.data)
    return digest.hexdigest()


def needed_bytes(count: int, size: int) -> int:
    """What a cache of so many images takes."""
    return count * size * size * 3
