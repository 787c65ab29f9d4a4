"""Split a large source into partitions that several machines read, now or after an interruption.

The description of a partition is small and is sent to a worker; each worker reads its own items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from ..data import Dataset, open_source
from ..data.images.decode import SUFFIXES, decode
from ..data.sources.registry import NAMED, source_root
from ..errors import FolderError, InputError
from ..utils.storage import file_system, translate_errors
from ..utils.urls import shown

KeyedImage = tuple[str, Callable[[], Image.Image]]  # a key, and a function that reads its image or raises InputError


class PartitionedSource(ABC):
    """A source split into numbered partitions."""

    source: str

    @property
    @abstractmethod
    def count(self) -> int:
        """How many partitions there are."""

    @abstractmethod
    def read(self, number: int) -> Iterator[KeyedImage]:
        """Yield the items of a partition, always in the same order."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what distinguishes this source and its partitions from others: compared when a run continues."""


@dataclass
class DatasetPartitions(PartitionedSource):
    """Any source that `open_source` knows: a folder, a list, arrays. It must have the same path on every machine."""

    source: str
    root: str | None
    size: int

    @cached_property
    def _dataset(self) -> Dataset:
        return open_source(self.source, root=self.root)

    @property
    def count(self) -> int:
        """How many ranges of items there are."""
        return -(-len(self._dataset) // self.size)

    def read(self, number: int) -> Iterator[KeyedImage]:
        """Yield a range of items."""
        keys = self._dataset.keys
        for at in range(number * self.size, min((number + 1) * self.size, len(keys))):
            yield keys[at], partial(self._image, at)

    def _image(self, at: int) -> Image.Image:
        pixels = np.asarray(self._dataset[at])
        if pixels.ndim != 3:
            raise InputError(f"{self.source} holds features, not images: encode it without --engine")
        return Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0])

    def describe(self) -> dict[str, Any]:
        """Return the source, and a digest of its keys."""
        keys = self._dataset.keys
        return {"source": self.source, "size": self.size, "items": len(keys), "keys": _digest(keys)}

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self.source, "root": self.root, "size": self.size}  # each worker opens the source itself


@dataclass
class FilePartitions(PartitionedSource):
    """Image files below an address that pyarrow knows: s3://, gs://, hdfs://, file://, or a path."""

    source: str
    size: int
    paths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.paths:
            from pyarrow import fs

            filesystem, base = _existing(self.source)
            with _reading(self.source):
                found = filesystem.get_file_info(fs.FileSelector(base, recursive=True))
            self.paths = sorted(
                info.path for info in found if info.is_file and PurePosixPath(info.path).suffix.lower() in SUFFIXES
            )
        if not self.paths:
            raise InputError(f"{shown(self.source)} holds no image files: give the address of a folder of images")

    @property
    def count(self) -> int:
        """How many slices of the list of files there are."""
        return -(-len(self.paths) // self.size)

    def read(self, number: int) -> Iterator[KeyedImage]:
        """Yield a slice of the files; the key is the path below the address."""
        filesystem, base = _existing(self.source)

        def read_image(path: str) -> Image.Image:
            with _reading(path):
                try:
                    with filesystem.open_input_stream(path) as stream:
                        content = stream.read()
                except FileNotFoundError:
                    raise InputError(f"{path} was deleted after the files were listed: restore it") from None
            return _decode(content, path)

        for path in self.paths[number * self.size : (number + 1) * self.size]:
            yield path.removeprefix(base).lstrip("/"), partial(read_image, path)

    def describe(self) -> dict[str, Any]:
        """Return the address, and a digest of the list of files."""
        return {"source": shown(self.source), "size": self.size, "items": len(self.paths), "files": _digest(self.paths)}


@dataclass
class ParquetPartitions(PartitionedSource):
    """Parquet files with a column of keys and one with the bytes of image files; a row group is a partition."""

    source: str
    keys: str
    images: str
    groups: list[tuple[str, int, int]] = field(default_factory=list)  # file, row group, its number of rows

    def __post_init__(self) -> None:
        if self.groups:
            return
        from pyarrow import fs, parquet

        filesystem, base = _existing(self.source)
        with _reading(self.source):
            info = filesystem.get_file_info(base)
            found = [info] if info.is_file else filesystem.get_file_info(fs.FileSelector(base, recursive=True))
        for path in sorted(info.path for info in found if info.is_file and info.path.endswith(".parquet")):
            with _reading(path), filesystem.open_input_file(path) as file:
                opened = parquet.ParquetFile(file)
                missing = {self.keys, self.images} - set(opened.schema_arrow.names)
                if missing:
                    raise InputError(
                        f"{path} has no column {missing.pop()!r}: it has {', '.join(opened.schema_arrow.names)}; name "
                        "them with --key-column and --image-column"
                    )
                rows = [opened.metadata.row_group(group).num_rows for group in range(opened.num_row_groups)]
                self.groups += [(path, group, count) for group, count in enumerate(rows)]
        if not self.groups:
            raise InputError(
                f"{shown(self.source)} holds no .parquet file: give a file, or the address of a folder of them"
            )

    @property
    def count(self) -> int:
        """How many row groups there are."""
        return len(self.groups)

    def read(self, number: int) -> Iterator[KeyedImage]:
        """Yield the rows of a group."""
        from pyarrow import parquet

        path, group, _ = self.groups[number]
        filesystem, _ = _existing(self.source)
        with _reading(path), filesystem.open_input_file(path) as file:
            table = parquet.ParquetFile(file).read_row_group(group, columns=[self.keys, self.images])
        for row in table.to_pylist():
            key = str(row[self.keys])
            yield key, partial(_decode, row[self.images], f"{key} of {path}")

    def describe(self) -> dict[str, Any]:
        """Return the address, and a digest of its row groups."""
        rows = sum(count for _, _, count in self.groups)
        digest = _digest(f"{path}:{group}:{count}" for path, group, count in self.groups)
        return {"source": shown(self.source), "groups": len(self.groups), "items": rows, "rows": digest}


def _digest(names: Iterable[str]) -> str:
    """A digest of all names in their order: a name more or less changes every later partition."""
    digest = blake2b(digest_size=16)
    for name in names:
        digest.update(name.encode() + b"\0")
    return digest.hexdigest()


def _decode(content: Any, name: str) -> Image.Image:
    if isinstance(content, dict):
        content = content.get("bytes")  # as Hugging Face's datasets store images
    if not isinstance(content, bytes):
        raise InputError(f"{name} has no bytes of an image file: name the column that has them with --image-column")
    return Image.fromarray(decode(content, name=name))


def partition_source(
    source: str, *, root: str | None = None, size: int = 1024, keys: str = "key", images: str = "image"
) -> PartitionedSource:
    """Split a source into partitions.

    Args:
        source: a name, a path or an address.
        root: where the files of a named source are.
        size: about how many items a partition has; Parquet files are split by row groups instead.
        keys: the column of a Parquet file with the keys.
        images: the column of a Parquet file with the images.

    Returns:
        The source, of which each partition can be read alone.
    """
    if size < 1:
        raise InputError(f"size={size}: give at least 1 item a partition")
    if source.endswith(".parquet") or source.startswith("parquet+"):
        return ParquetPartitions(_absolute(source.removeprefix("parquet+")), keys, images)
    if "://" in source:
        return FilePartitions(source, size)
    if source in NAMED:  # even if there is a folder of that name
        return DatasetPartitions(
            source,
            root if source == "digits" else str(source_root(source, Path(root) if root else None).absolute()),
            size,
        )
    return DatasetPartitions(_absolute(source), root and _absolute(root), size)


def _absolute(name: str) -> str:
    """An absolute path, which means the same in every working folder; a name that does not exist stays as it is."""
    return str(Path(name).absolute()) if Path(name).exists() else name


def _existing(address: str) -> tuple[Any, str]:
    """Return the file system of an address and the path there; raise if nothing exists there."""
    filesystem, path = file_system(address)
    from pyarrow import fs

    with _reading(address):
        missing = filesystem.get_file_info(path).type == fs.FileType.NotFound
    if missing:
        raise InputError(f"there is nothing at {shown(address)}: give an address that exists")
    return filesystem, path


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Raise FolderError, which ends the run: an InputError is about one image, which may be left out."""
    with translate_errors(
        lambda why: FolderError(f"{shown(name)} cannot be read ({why}): check the address and the permissions")
    ):
        yield
