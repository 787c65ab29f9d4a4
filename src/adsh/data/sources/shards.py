"""WebDataset shards: tar files whose members of one name, such as 0001.jpg and 0001.cls, are one sample.

A label is the number in .cls, or `label`, `labels` or `tags` of .json. Images are found once, from the headers of the
tar files, and read on access; compressed shards are refused, since they cannot be read from the middle.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...errors import FolderError, InputError, first_line
from ...labels import LabelSets
from ...utils.storage import file_system, translate_errors
from ...utils.urls import shown
from ..dataset import Dataset
from ..images.decode import SUFFIXES, Pixels, decode
from ..tables import LABELS

_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MOST_TEXT = 1 << 20  # bytes of a .cls or .json
_MOST_SHARDS = 1_000_000


class _Member(NamedTuple):
    shard: int
    start: int
    size: int


class TarShards(Dataset):
    """The images of tar shards, in their order.

    Args:
        address: of the shards: a path or address, where {000..003} stands for numbers.
    """

    workers = None

    def __init__(self, address: str) -> None:
        self.name, self._shards = shown(address), list(expand(address))
        self._members: list[_Member] = []
        self.keys: list[str] = []
        labels: list[Any] = []
        for number, shard in enumerate(self._shards):
            for key, member, label in self._samples(number, shard):
                self.keys.append(key)
                self._members.append(member)
                labels.append(label)
        if not self.keys:
            raise InputError(f"{self.name} holds no image ({', '.join(SUFFIXES)}): give tar files of samples")
        self.labels = LabelSets.of(labels) if any(label is not None for label in labels) else None
        self.classes = () if self.labels is None else tuple(str(name) for name in self.labels.names)

    def __getitem__(self, index: int) -> Pixels:
        member = self._members[index]
        with self._open(self._shards[member.shard]) as file:
            file.seek(member.start)
            return decode(file.read(member.size), f"{self.name}: {self.keys[index]}")

    def _open(self, shard: str) -> Any:
        files, path = file_system(shard)
        with translate_errors(lambda why: FolderError(f"{shown(shard)} cannot be read ({why}): check the path")):
            return files.open_input_file(path)

    def _samples(self, number: int, shard: str) -> Iterator[tuple[str, _Member, Any]]:
        """Yield the key, the place of the image, and the label of each sample of a shard."""
        key, image, label = None, None, None
        with self._open(shard) as file:
            try:
                with tarfile.open(fileobj=file, mode="r:") as archive:
                    for member in archive:
                        if not member.isfile():
                            continue
                        stem, ending = _parts(member.name)
                        if stem != key:
                            if key is not None and image is not None:
                                yield key, image, label
                            key, image, label = stem, None, None
                        if f".{ending}" in SUFFIXES:
                            image = _Member(number, member.offset_data, member.size)
                        elif ending in ("cls", "json") and member.size <= _MOST_TEXT:
                            read = archive.extractfile(member)
                            assert read is not None
                            label = _label(read.read(), ending, f"{self.name}: {member.name}", label)
            except tarfile.TarError as problem:
                raise FolderError(
                    f"{shown(shard)} is no whole, uncompressed tar file ({first_line(problem)}): write it again"
                ) from None
        if key is not None and image is not None:
            yield key, image, label


def is_shards(source: str) -> bool:
    """Return whether this names tar shards."""
    return source.lower().endswith(".tar")


def open_shards(source: str) -> TarShards:
    """Open WebDataset's tar shards: a path or address, where {000..003} stands for numbers."""
    return TarShards(source)


def expand(address: str) -> Iterator[str]:
    """Yield the addresses that one with {first..last} stands for."""
    found = _BRACES.search(address)
    if found is None:
        yield address
        return
    first, last = found[1], found[2]
    if not 0 <= int(last) - int(first) < _MOST_SHARDS:
        raise InputError(f"{shown(address)}: give shards {{first..last}}, such as {{000..003}}")
    for number in range(int(first), int(last) + 1):
        yield f"{address[: found.start()]}{number:0{len(first)}d}{address[found.end() :]}"


def _parts(name: str) -> tuple[str, str]:
    """Return the key of a member, up to the first dot of its file name, and its ending."""
    folder, slash, file = name.rpartition("/")
    stem, _, ending = file.partition(".")
    return folder + slash + stem, ending.lower()


def _label(data: bytes, ending: str, called: str, before: Any) -> Any:
    """Return the label that a .cls or .json holds; the one known before where it holds none.

    Args:
        data: of the member.
        ending: cls or json.
        called: what errors call the member.
        before: the label that another member of the sample gave.
    """
    try:
        if ending == "cls":
            return int(data)
        values = json.loads(data)
    except ValueError:
        raise InputError(f"{called} is no {'number' if ending == 'cls' else 'JSON'}: write the sample again") from None
    if not isinstance(values, dict):
        return before
    return next((values[name] for name in LABELS if name in values), before)
