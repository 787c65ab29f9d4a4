"""A lock that one process of a machine holds, and that ends with the process."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import AdshError, AdshWarning, FolderError

_UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}  # of file systems that have no locks


@contextmanager
def locked_folder(folder: Path, taken: AdshError) -> Iterator[None]:
    """Hold the lock of a folder while the block lasts; raise `taken` at once if another process holds it.

    The lock is a file next to the folder, which may be renamed and replaced meanwhile. The operating system releases
    it when the process ends, however it ends: a file that a killed process left locks nothing. Where files cannot be
    locked, a warning says so and nothing is locked.

    Args:
        folder: what is locked; it need not exist.
        taken: the error for a folder that is locked.

    Raises:
        FolderError: no file can be created next to the folder, or the one there belongs to another user.
    """
    folder = folder.resolve()
    path = folder.parent / f".{folder.name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = _acquire(path)
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        if isinstance(problem, PermissionError) and os.path.lexists(path):
            raise FolderError(
                f"cannot open the lock file {path}: {reason}; delete it if no other run writes to {folder}"
            ) from None
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
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if not _lock(handle):
                warnings.warn(
                    f"files in {path.parent} cannot be locked: start only one run at a time into the same folder",
                    AdshWarning,
                    stacklevel=4,
                )
                return handle
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


def _lock(handle: int) -> bool:
    """Lock an open file; return False where files cannot be locked. Raises if another process has locked it."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # not on this system
        return False
    except OSError as problem:
        if problem.errno in _UNSUPPORTED:
            return False
        raise
    return True
