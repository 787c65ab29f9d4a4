"""A lock that one process of a machine holds, and that ends with the process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import AdshError, FolderError


@contextmanager
def locked_folder(folder: Path, taken: AdshError) -> Iterator[None]:
    """Hold the lock of a folder while the block lasts; raise `taken` at once if another process holds it.

    The lock is a file next to the folder, which may be renamed and replaced meanwhile. The operating system releases
    it when the process ends, however it ends: a file that a killed process left locks nothing.

    Args:
        folder: what is locked; it need not exist.
        taken: the error for a folder that is locked.

    Raises:
        FolderError: no file can be created next to the folder.
    """
    folder = folder.resolve()
    path = folder.parent / f".{folder.name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = _acquire(path)
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise FolderError(f"cannot write to {path.parent}: {reason}; choose another folder") from None
    if handle is None:
        raise taken
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # before the lock is released: who waits for it must open a new file
        os.close(handle)


def _acquire(path: Path) -> int | None:
    """Return the handle of the locked file; None if another process has locked it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)  # its holder deleted it between the two calls
