"""Files from the net: resumed where a download broke, checked against a digest, and whole or not there at all."""

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

_AT_ONCE = 1 << 18
_TRIES = 3  # in a row without a byte more
_BROKEN = (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError, urllib.error.URLError)


class DownloadError(FolderError):
    """A file that could not be had from the net."""


def fetch(
    url: str,
    target: Path,
    digest: str,
    *,
    algorithm: str = "sha256",
    progress: Progress | None = None,
    wait: float = 30,
) -> Path:
    """`target`, downloaded unless it is there with this digest.

    What has come is kept beside it as .NAME.part, and the next call goes on from there. `wait` is the seconds
    that the server may stay silent.
    """
    if target.is_file() and file_digest(target, algorithm) == digest:
        return target
    part = target.parent / f".{target.name}.part"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        resumed = part.exists() and part.stat().st_size > 0
        for _ in range(2 if resumed else 1):  # a part of something else fails the digest: once more from the start
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
        f"{url} gave a file whose {algorithm} is {found}, not {digest}: it was deleted; try again, or another network"
    )


def file_digest(path: Path, algorithm: str) -> str:
    """The digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _fill(url: str, part: Path, progress: Progress | None, wait: float) -> None:
    """Appends to `part` until it is whole, asking again from where it is when the connection breaks."""
    idle = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            if _append(url, part, progress, wait):
                return
            problem: object = "it ended early"
        except urllib.error.HTTPError as refused:
            if refused.code == 416 and before:  # nothing after what is here: whole, or a part of something else
                return
            raise DownloadError(f"{url} answers {refused.code} {refused.reason}: try again later") from None
        except _BROKEN as broken:
            problem = getattr(broken, "reason", broken) or type(broken).__name__
        idle = 0 if part.exists() and part.stat().st_size > before else idle + 1
        if not part.exists() or not part.stat().st_size or idle >= _TRIES:
            raise DownloadError(f"{url} cannot be had ({problem}): try again, and the download goes on where it broke")


def _append(url: str, part: Path, progress: Progress | None, wait: float) -> bool:
    """One request for what is missing; whether all of it came."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=wait) as answer:
        if answer.status != 206:  # the server sends all of it
            have = 0
        length = int(answer.headers.get("Content-Length") or 0)
        total = have + length if length else 0
        _check_space(part, length)
        with part.open("ab" if have else "wb") as file:
            while chunk := answer.read(_AT_ONCE):
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
