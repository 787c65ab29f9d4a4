"""Sources at addresses: Parquet files, and folders of images with a sub-folder a class, on s3://, gs://, file://, …"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from ...errors import FolderError, InputError
from ...labels import LabelSets
from ...utils.storage import file_system, translate_errors
from ...utils.urls import shown
from ..dataset import Dataset
from ..images.decode import SUFFIXES, Pixels, decode
from ..tables import SUFFIXES as TABLES
from ..tables import open_table_file
from .shards import is_shards, open_shards


def open_address(address: str) -> Dataset:
    """Open a table file, tar shards or a folder of images, by its address; credentials are those that pyarrow finds."""
    if address.partition("?")[0].lower().endswith(TABLES):
        return open_table_file(address)
    if is_shards(address.partition("?")[0]):
        return open_shards(address)
    return RemoteImages(address)


class RemoteImages(Dataset):
    """The images below an address, read on access; the first sub-folder is the class.

    Args:
        address: of the folder.
    """

    workers = None

    def __init__(self, address: str) -> None:
        from pyarrow import fs

        self.name = shown(address)
        self._files, base = file_system(address)
        self._base = base.rstrip("/")
        with translate_errors(lambda why: FolderError(f"{self.name} cannot be listed ({why}): check the address")):
            found = self._files.get_file_info(fs.FileSelector(self._base, recursive=True))
        paths = sorted(info.path for info in found if info.is_file and info.path.lower().endswith(SUFFIXES))
        if not paths:
            raise InputError(f"{self.name} holds no image: give a folder with a sub-folder a class")
        self.keys = [path[len(self._base) + 1 :] for path in paths]
        names = [PurePosixPath(key).parts[0] if "/" in key else None for key in self.keys]
        self.labels = LabelSets.of(names) if any(names) else None
        self.classes = () if self.labels is None else tuple(str(name) for name in self.labels.names)

    def __getitem__(self, index: int) -> Pixels:
        return decode(read_bytes(self._files, f"{self._base}/{self.keys[index]}"), f"{self.name}/{self.keys[index]}")


def read_bytes(files: Any, path: str) -> bytes:
    """Return the bytes of a file of a pyarrow file system."""
    with (
        translate_errors(lambda why: InputError(f"{path} cannot be read ({why}): check the address")),
        files.open_input_stream(path) as file,
    ):
        data: bytes = file.read()
    return data
