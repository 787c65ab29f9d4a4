"""Read the files inside a .tar.gz: nothing is unpacked, and the names of members are never used as paths."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ...errors import FolderError, InputError, first_line

_LARGEST = 1 << 27  # bytes a member may have: CIFAR-10's have 31 million


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name, without folders, and the bytes of every file in the archive, in its order."""
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                _check(member, path)
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    yield PurePosixPath(member.name).name, file.read()
    except FileNotFoundError:
        raise FolderError(f"{path} does not exist: give the path of a .tar.gz") from None
    except (tarfile.TarError, EOFError, zlib.error, OSError) as problem:
        if isinstance(problem, FolderError):
            raise
        raise FolderError(f"{path} is broken or incomplete ({first_line(problem)}): download it again") from None


def _check(member: tarfile.TarInfo, path: Path) -> None:
    name = member.name.replace("\\", "/")
    if name.startswith("/") or ".." in name.split("/") or name[1:2] == ":":
        raise InputError(f"{path} has a member named {member.name!r}, outside of it: refused, download it again")
    if not (member.isfile() or member.isdir()):
        raise InputError(f"{path} has a member {member.name!r} that is a link or device: refused, download it again")
    if member.size > _LARGEST:
        raise InputError(f"{path} has a member {member.name!r} of {member.size:,} bytes: refused, download it again")
