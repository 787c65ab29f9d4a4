"""A segment as a file that is mapped into memory, after all of it was checked.

    magic, length of the header, its CRC-32; the header: JSON, with the type, shape, offset and CRC-32s of each array;
    the arrays, each at a multiple of 64 bytes

A snapshot repeats what the database holds. One that is damaged or missing is rebuilt from the database.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ...utils.files import replacing_file
from .segment import Arrays

_MAGIC = b"adsh snapshot 1\n"
_START = struct.Struct("<16sII")
_ALIGNED = 64
_BLOCK = 1 << 24  # bytes that one CRC-32 covers, so that several threads can share the check


class SnapshotDamaged(Exception):
    """A snapshot is missing, or is not what was written."""


def write_snapshot(path: Path, arrays: Arrays) -> None:
    """Write all arrays to a file, or nothing."""
    entries: dict[str, Any] = {}
    end = 0
    for name, array in arrays.items():
        end = _aligned(end)
        data = _octets(array)
        checks = [zlib.crc32(data[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK)]
        entries[name] = {"type": array.dtype.str, "shape": array.shape, "at": end, "checks": checks}
        end += len(data)
    header = json.dumps({"bytes": end, "arrays": entries}).encode()
    with replacing_file(path) as file:
        file.write(_START.pack(_MAGIC, len(header), zlib.crc32(header)) + header)
        start = _aligned(file.tell())
        for name, array in arrays.items():
            file.seek(start + entries[name]["at"])
            file.write(_octets(array))
        file.truncate(start + end)


def read_snapshot(path: Path) -> tuple[Arrays, int]:
    """Map the arrays of a snapshot into memory, and return them with the size of the file.

    Raises:
        SnapshotDamaged: not every byte is what was written.
    """
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(mapped) < _START.size:
            raise SnapshotDamaged(f"{path} is too short")
        magic, length, check = _START.unpack_from(mapped)
        header = mapped[_START.size : _START.size + length]
        if magic != _MAGIC or zlib.crc32(header) != check:
            raise SnapshotDamaged(f"{path} is damaged in its header")
        described = json.loads(header)
        start = _aligned(_START.size + length)
        if len(mapped) != start + described["bytes"]:
            raise SnapshotDamaged(f"{path} has {len(mapped)} bytes, not {start + described['bytes']}")
        arrays: Arrays = {}
        blocks = []
        for name, one in described["arrays"].items():
            dtype, count = np.dtype(one["type"]), int(np.prod(one["shape"], dtype=np.int64))
            arrays[name] = np.frombuffer(mapped, dtype, count, start + one["at"]).reshape(one["shape"])
            data = _octets(arrays[name])
            blocks += [(data[at * _BLOCK : (at + 1) * _BLOCK], right) for at, right in enumerate(one["checks"])]
        with ThreadPoolExecutor(max(1, min(len(blocks), os.cpu_count() or 1, 4))) as pool:
            if not all(pool.map(lambda block: zlib.crc32(block[0]) == block[1], blocks)):
                raise SnapshotDamaged(f"{path} is damaged")
        return arrays, len(mapped)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as problem:
        raise SnapshotDamaged(f"{path} cannot be read ({problem})") from None


def _octets(array: np.ndarray[Any, Any]) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # an array is a buffer


def _aligned(at: int) -> int:
    return -(-at // _ALIGNED) * _ALIGNED
