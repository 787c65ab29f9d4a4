"""How much may be cached, and where: the flags --cache and --cache-size in numbers."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ..errors import FolderError, InputError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SHARE = 0.5  # of the free memory, which a cache may take by default


def parse_bytes(text: str | int) -> int:
    """Return the number of bytes that 8GB, 500 MB, 1.5GiB or a plain number means."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(text))
    if found is None or found[2].upper() not in _UNITS:
        raise InputError(f"cache size {text!r}: give a number with a unit, such as 8GB or 500MB")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def free_memory() -> int:
    """Return the bytes that this process could still take, by the system and by its control group."""
    found = []
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found += [int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")]
    except OSError:
        found += [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")] if hasattr(os, "sysconf") else []
    try:
        most, used = (Path("/sys/fs/cgroup", name).read_text().strip() for name in ("memory.max", "memory.current"))
        found += [int(most) - int(used)] if most != "max" else []
    except (OSError, ValueError):
        pass
    return max(0, min(found, default=1 << 30))


def memory_limit(requested: str | int | None) -> int:
    """Return the bytes that a cache in memory may take: as requested, or half of what is free."""
    return int(free_memory() * _SHARE) if requested is None else parse_bytes(requested)


def disk_limit(folder: Path, requested: str | int | None) -> int:
    """Return the bytes that a cache in this folder may take: what is free there, at most what was requested."""
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    try:
        free = shutil.disk_usage(existing).free
    except OSError as problem:
        raise FolderError(f"{existing} cannot be read ({problem.strerror}): give --cache another folder") from None
    return free if requested is None else min(free, parse_bytes(requested))


def default_folder() -> Path:
    """Return the folder of `--cache disk`: $XDG_CACHE_HOME/adsh, else ~/.cache/adsh."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "adsh"


def format_bytes(count: int) -> str:
    """Return a number of bytes as people read it."""
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1e3:,.1f} kB"
