"""Download files: resumed where a download broke, checked against a digest, complete or not there at all."""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from ...errors import FolderError

Progress = Callable[[int, int], None]  # bytes so far, bytes in all (0 where the server does not say)

_AT_ONCE = 1 << 18  # bytes
_TRIES = 3  # in a row without any progress
_BROKEN = (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError, urllib.error.URLError)


class DownloadError(FolderError):
    """A file could not be downloaded."""


def fetch(
    url: str,
    target: Path,
    digest: str,
    *,
    algorithm: str = "sha256",
    progress: Progress | None = None,
    wait: float = 30,
) -> Path:
    """Download a file, unless it is there with this digest.

    An incomplete download is kept as .NAME.part, and the next call resumes it.

    Args:
        url: where it is.
        target: the file to write.
        digest: what the file must have.
        algorithm: of the digest.
        progress: called with the bytes so far and the bytes in all.
        wait: the seconds after which a silent server is given up.

    Returns:
        `target`.

    Raises:
        DownloadError: it cannot be downloaded, or has another digest.
    """
    if target.is_file() and file_digest(target, algorithm) == digest:
        return target
    part = target.parent / f".{target.name}.part"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        resumed = part.exists() and part.stat().st_size > 0
        for _ in range(2 if resumed else 1):  # the part of another file fails the digest: once more from the start
            _fill(url, part, progress, wait)
            found = file_digest(part, algorithm)
            if found == digest:
                os.replace(part, target)
                return target
            part.unlink()
    except OSError as problem:
        if isinstance(problem, FolderError):
            raise
        raise FolderError(f"cannot write {target}: {_reason(problem)}") from None
    raise DownloadError(
        f"{url} returned a file whose {algorithm} is {found}, not {digest}: it was deleted; try again, or "
        "from another network"
    )


def file_digest(path: Path, algorithm: str) -> str:
    """Return the digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _fill(url: str, part: Path, progress: Progress | None, wait: float) -> None:
    """Append to `part` until it is complete, with a new request from there when the connection breaks.

    Args:
        url: the address of the file.
        part: where the bytes received so far are.
        progress: called with the bytes received so far, and of all (0 if unknown).
        wait: seconds to wait for the server.
    """
    idle = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            if _append(url, part, progress, wait):
                return
            problem: object = "it ended early"
        except urllib.error.HTTPError as refused:
            if (
                refused.code == 416 and before
            ):  # nothing follows what is there: it is complete, or the part of another file
                return
            raise DownloadError(f"{url} responds {refused.code} {refused.reason}: try again later") from None
        except _BROKEN as broken:
            problem = getattr(broken, "reason", broken) or type(broken).__name__
        idle = 0 if part.exists() and part.stat().st_size > before else idle + 1
        if not part.exists() or not part.stat().st_size or idle >= _TRIES:
            raise DownloadError(
                f"{url} cannot be downloaded ({problem}): try again, and the download resumes where it broke"
            )


def _append(url: str, part: Path, progress: Progress | None, wait: float) -> bool:
    """Request the missing bytes, and append them.

    Args:
        url, part, progress, wait: as of `_fill`.

    Returns:
        True if the file is complete.
    """
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=wait) as response:
        if response.status != 206:  # the server sends all of it
            have = 0
        length = int(response.headers.get("Content-Length") or 0)
        total = have + length if length else 0
        _check_space(part, length)
        with part.open("ab" if have else "wb") as file:
            while chunk := response.read(_AT_ONCE):
                file.write(chunk)
                have += len(chunk)
                if progress is not None:
                    progress(have, total)
    return not total or have >= total


def _check_space(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if free < needed:
        raise FolderError(
            f"not enough space in {part.parent}: {needed / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB free; "
            "free some, or choose another folder"
        )


def _reason(problem: OSError) -> str:
    if problem.errno == errno.ENOSPC:
        return "no space is left on the disk; what came so far is kept"
    return (problem.strerror or str(problem)).lower()
