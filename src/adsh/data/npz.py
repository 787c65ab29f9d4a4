"""Arrays in .npy and .npz files: memory-mapped unless they are compressed, and never unpickled."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..errors import FolderError, first_line
from ..utils.reading import check_regular
from .cache_limits import format_bytes, free_memory


def load_npy(path: Path) -> NDArray[Any]:
    """Return the array of a .npy file, memory-mapped."""
    try:
        check_regular(path)
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FolderError(f"{path} does not exist: give the path of a .npy file") from None
    except Exception as problem:  # NumPy's parser raises whatever the broken bytes lead it to
        raise FolderError(f"{path} cannot be read as an array ({first_line(problem)}): save it again") from None
    if not isinstance(array, np.ndarray):
        raise FolderError(f"{path} is an .npz under another name: rename it to .npz")
    return array


def npy_size(file: IO[bytes]) -> int:
    """Return how many bytes the array of an open .npy takes in memory, by its header."""
    version = npy.read_magic(file)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = header(file)
    return int(math.prod(shape)) * dtype.itemsize


class Npz(Mapping[str, NDArray[Any]]):
    """The arrays of an .npz by name. What `numpy.savez` wrote is memory-mapped, what `savez_compressed` wrote read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            check_regular(path)
            with zipfile.ZipFile(path) as archive:
                self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        except FileNotFoundError:
            raise FolderError(f"{path} does not exist: give the path of an .npz file") from None
        except Exception as problem:  # as above
            raise FolderError(f"{path} cannot be read as an .npz ({first_line(problem)}): save it again") from None

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __getitem__(self, name: str) -> NDArray[Any]:
        member = self._members[name]
        try:
            if member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1:
                mapped = self._mapped(member)
                if mapped is not None:
                    return mapped
            with zipfile.ZipFile(self.path) as archive:
                with archive.open(member) as file:
                    self._check_size(member, npy_size(file))
                with archive.open(member) as file:
                    read: NDArray[Any] = npy.read_array(file, allow_pickle=False)
                    return read
        except Exception as problem:  # as above
            raise FolderError(f"{self.path}: {name} cannot be read ({first_line(problem)}): save it again") from None

    def _mapped(self, member: zipfile.ZipInfo) -> NDArray[Any] | None:
        """Map the member's bytes in place: after the zip's own header (whose two lengths are at 26) and the .npy's."""
        with self.path.open("rb") as file:
            file.seek(member.header_offset + 26)
            file.seek(sum(struct.unpack("<HH", file.read(4))), 1)
            end = file.tell() + member.file_size
            version = npy.read_magic(file)
            header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
            if header is None:
                return None
            shape, fortran, dtype = header(file)
            if dtype.hasobject or not math.prod(shape):
                return None  # read_array says what is wrong, or gives the empty array
            start = file.tell()
            if start + math.prod(shape) * dtype.itemsize > end:
                raise ValueError("it declares more numbers than it holds")
            return np.memmap(self.path, dtype, "r", start, shape, "F" if fortran else "C")

    @property
    def unpacked(self) -> int:
        """How many bytes the arrays have together, by what the archive declares."""
        return sum(member.file_size for member in self._members.values())

    def _check_size(self, member: zipfile.ZipInfo, size: int) -> None:
        """Raise if an array would take more bytes than its member has, or than there is memory for."""
        if size > member.file_size:
            raise ValueError("it declares more numbers than it holds")
        free = free_memory()
        if size > free:
            raise ValueError(
                f"it unpacks to {format_bytes(size)}, and {format_bytes(free)} of memory are free; "
                "savez without compression is read in place"
            )
