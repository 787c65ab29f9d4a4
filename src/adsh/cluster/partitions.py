"""A huge source cut into partitions that are read far apart: by machines, and again after a stop.

What describes a partition is small and can be sent; whoever works on it reads its items where he is.
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
from ..utils.storage import file_system, told_as
from ..utils.urls import shown

Named = tuple[str, Callable[[], Image.Image]]  # a key, and what reads its picture, or says why it cannot be read


class PartitionedSource(ABC):
    """A source in numbered partitions."""

    source: str

    @property
    @abstractmethod
    def count(self) -> int:
        """How many partitions there are."""

    @abstractmethod
    def read(self, number: int) -> Iterator[Named]:
        """The items of a partition, in an order that is always the same."""

    @abstractmethod
    def told(self) -> dict[str, Any]:
        """What tells this source, cut like this, from another: compared when a run goes on."""


@dataclass
class DatasetPartitions(PartitionedSource):
    """Any source that `open_source` knows: a folder, a list, arrays. Everyone must see it under the same path."""

    source: str
    root: str | None
    size: int

    @cached_property
    def _dataset(self) -> Dataset:
        return open_source(self.source, root=self.root)

    @property
    def count(self) -> int:
        """Ranges of items."""
        return -(-len(self._dataset) // self.size)

    def read(self, number: int) -> Iterator[Named]:
        """A range of items."""
        keys = self._dataset.keys
        for at in range(number * self.size, min((number + 1) * self.size, len(keys))):
            yield keys[at], partial(self._picture, at)

    def _picture(self, at: int) -> Image.Image:
        pixels = np.asarray(self._dataset[at])
        if pixels.ndim != 3:
            raise InputError(f"{self.source} holds features, not pictures: code it without --engine")
        return Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0])

    def told(self) -> dict[str, Any]:
        """Its keys."""
        keys = self._dataset.keys
        return {"source": self.source, "size": self.size, "items": len(keys), "keys": _digest(keys)}

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self.source, "root": self.root, "size": self.size}  # whoever gets it opens it himself


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
                one.path for one in found if one.is_file and PurePosixPath(one.path).suffix.lower() in SUFFIXES
            )
        if not self.paths:
            raise InputError(f"{shown(self.source)} holds no image files: give the address of a folder of images")

    @property
    def count(self) -> int:
        """Slices of the list of files."""
        return -(-len(self.paths) // self.size)

    def read(self, number: int) -> Iterator[Named]:
        """A slice of the files; the key is the path below the address."""
        filesystem, base = _existing(self.source)

        def picture(path: str) -> Image.Image:
            with _reading(path):
                try:
                    with filesystem.open_input_stream(path) as stream:
                        content = stream.read()
                except FileNotFoundError:
                    raise InputError(f"{path} is gone since the files were listed: put it back") from None
            return _decoded(content, path)

        for path in self.paths[number * self.size : (number + 1) * self.size]:
            yield path.removeprefix(base).lstrip("/"), partial(picture, path)

    def told(self) -> dict[str, Any]:
        """The list of files."""
        return {"source": shown(self.source), "size": self.size, "items": len(self.paths), "files": _digest(self.paths)}


@dataclass
class ParquetPartitions(PartitionedSource):
    """Parquet files with a column of keys and one of image files' bytes; a row group is a partition."""

    source: str
    keys: str
    images: str
    groups: list[tuple[str, int, int]] = field(default_factory=list)  # file, row group in it, rows

    def __post_init__(self) -> None:
        if self.groups:
            return
        from pyarrow import fs, parquet

        filesystem, base = _existing(self.source)
        with _reading(self.source):
            info = filesystem.get_file_info(base)
            found = [info] if info.is_file else filesystem.get_file_info(fs.FileSelector(base, recursive=True))
        for path in sorted(one.path for one in found if one.is_file and one.path.endswith(".parquet")):
            with _reading(path), filesystem.open_input_file(path) as file:
                held = parquet.ParquetFile(file)
                missing = {self.keys, self.images} - set(held.schema_arrow.names)
                if missing:
                    raise InputError(
                        f"{path} has no column {missing.pop()!r}: it has {', '.join(held.schema_arrow.names)}; name "
                        "them with --key-column and --image-column"
                    )
                rows = [held.metadata.row_group(group).num_rows for group in range(held.num_row_groups)]
                self.groups += [(path, group, count) for group, count in enumerate(rows)]
        if not self.groups:
            raise InputError(
                f"{shown(self.source)} holds no .parquet file: give a file, or the address of a folder of them"
            )

    @property
    def count(self) -> int:
        """Row groups."""
        return len(self.groups)

    def read(self, number: int) -> Iterator[Named]:
        """The rows of a group."""
        from pyarrow import parquet

        path, group, _ = self.groups[number]
        filesystem, _ = _existing(self.source)
        with _reading(path), filesystem.open_input_file(path) as file:
            table = parquet.ParquetFile(file).read_row_group(group, columns=[self.keys, self.images])
        for row in table.to_pylist():
            key = str(row[self.keys])
            yield key, partial(_decoded, row[self.images], f"{key} of {path}")

    def told(self) -> dict[str, Any]:
        """Its row groups."""
        rows = sum(count for _, _, count in self.groups)
        digest = _digest(f"{path}:{group}:{count}" for path, group, count in self.groups)
        return {"source": shown(self.source), "groups": len(self.groups), "items": rows, "rows": digest}


def _digest(names: Iterable[str]) -> str:
    """Of all names in their order: one more, or another, and every partition after it is another."""
    digest = blake2b(digest_size=16)
    for name in names:
        digest.update(name.encode() + b"\0")
    return digest.hexdigest()


def _decoded(content: Any, name: str) -> Image.Image:
    if isinstance(content, dict):
        content = content.get("bytes")  # as Hugging Face's datasets keep images
    if not isinstance(content, bytes):
        raise InputError(f"{name} has no bytes of an image file: name the column that has with --image-column")
    return Image.fromarray(decode(content, name=name))


def partition_source(
    source: str, *, root: str | None = None, size: int = 1024, keys: str = "key", images: str = "image"
) -> PartitionedSource:
    """The source at this name, path or address, cut into partitions of about `size` items."""
    if size < 1:
        raise InputError(f"size={size}: give at least 1 item a partition")
    if source.endswith(".parquet") or source.startswith("parquet+"):
        return ParquetPartitions(_for_all(source.removeprefix("parquet+")), keys, images)
    if "://" in source:
        return FilePartitions(source, size)
    if source in NAMED:  # even where a folder here has that name
        return DatasetPartitions(
            source,
            root if source == "digits" else str(source_root(source, Path(root) if root else None).absolute()),
            size,
        )
    return DatasetPartitions(_for_all(source), root and _for_all(root), size)


def _for_all(name: str) -> str:
    """A path that means the same in every folder that others may work in; what is none is told when it is opened."""
    return str(Path(name).absolute()) if Path(name).exists() else name


def _existing(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path there, which exists."""
    filesystem, path = file_system(address)
    from pyarrow import fs

    with _reading(address):
        missing = filesystem.get_file_info(path).type == fs.FileType.NotFound
    if missing:
        raise InputError(f"there is nothing at {shown(address)}: give an address that exists")
    return filesystem, path


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Not an InputError, which is about a picture and may be left out: a store that fails ends the run."""
    with told_as(lambda why: FolderError(f"{shown(name)} cannot be read ({why}): check the address and the rights")):
        yield
