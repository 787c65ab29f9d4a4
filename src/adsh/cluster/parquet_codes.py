"""The codes of a huge collection as Parquet files, a partition each: whole or not there, so that a run can go on."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..errors import FolderError, InputError
from ..hamming.bits import Codes, bytes_for
from ..utils.storage import file_system, told_as
from ..utils.urls import shown

ABOUT = "encode.json"
_LEFT_OUT = "left out"
_PART = re.compile(r"part-(\d+)\.parquet$")


class ParquetCodes:
    """A folder, or an address that pyarrow knows, with part-NUMBER.parquet: columns `key` and `code`."""

    def __init__(self, out: str, bits: int) -> None:
        self.out, self.bits, self.id = shown(out), bits, ""  # which collection this is: see `begin`
        self._files, self._base = file_system(out)
        with self._writing():
            self._files.create_dir(self._base, recursive=True)

    def begin(self, told: dict[str, Any]) -> None:
        """Notes what is coded and gives it an id, or checks that it is what was noted when a run goes on."""
        path = f"{self._base}/{ABOUT}"
        from pyarrow import fs

        if self._files.get_file_info(path).type == fs.FileType.NotFound:
            if self.done():
                raise InputError(f"{self.out} holds parts of something else: give another --out")
            self.id = secrets.token_hex(8)
            with self._writing():
                with self._files.open_output_stream(self._new(ABOUT)) as file:
                    file.write((json.dumps({"id": self.id, **told}, indent=1) + "\n").encode())
                self._files.move(self._new(ABOUT), path)
            return
        with self._files.open_input_stream(path) as file:
            try:
                noted = json.loads(file.read())
                self.id = noted["id"]
            except (ValueError, TypeError, KeyError):
                raise FolderError(f"{self.out}/{ABOUT} is damaged: give another --out") from None
        for name, value in told.items():
            if noted.get(name) != value:
                raise InputError(
                    f"{self.out} was begun with {name} {noted.get(name)!r}, and now it is {value!r}: give another --out"
                )

    def done(self) -> set[int]:
        """The partitions that are there."""
        from pyarrow import fs

        found = self._files.get_file_info(fs.FileSelector(self._base))
        return {int(match[1]) for one in found if (match := _PART.search(one.path))}

    def write(self, number: int, keys: Sequence[str], codes: Codes, left_out: Sequence[str] = ()) -> None:
        """One partition, whole or not at all, and a line for each picture that was left out of it."""
        import pyarrow
        from pyarrow import parquet

        column = pyarrow.FixedSizeBinaryArray.from_buffers(
            pyarrow.binary(bytes_for(self.bits)), len(codes), [None, pyarrow.py_buffer(np.ascontiguousarray(codes))]
        )
        table = pyarrow.table({"key": pyarrow.array(list(keys), pyarrow.string()), "code": column})
        table = table.replace_schema_metadata({_LEFT_OUT: json.dumps(list(left_out))})
        new = self._new(f"{number}-{secrets.token_hex(4)}")  # of this writer alone
        with self._writing():
            parquet.write_table(table, new, filesystem=self._files)
            self._files.move(new, f"{self._base}/{_name(number)}")

    def read(self, number: int) -> tuple[list[str], Codes]:
        """The keys and codes of a partition."""
        from pyarrow import parquet

        table = parquet.read_table(f"{self._base}/{_name(number)}", filesystem=self._files)
        width = bytes_for(self.bits)
        codes = np.frombuffer(b"".join(table["code"].to_pylist()), dtype=np.uint8).reshape(-1, width)
        return table["key"].to_pylist(), codes

    def left_out(self, number: int) -> list[str]:
        """A line for each picture that was left out of a partition."""
        from pyarrow import parquet

        metadata = parquet.read_schema(f"{self._base}/{_name(number)}", filesystem=self._files).metadata or {}
        lines: list[str] = json.loads(metadata.get(_LEFT_OUT.encode(), b"[]"))
        return lines

    def _new(self, name: str) -> str:
        return f"{self._base}/.{name}"

    def _writing(self) -> AbstractContextManager[None]:
        return told_as(lambda why: FolderError(f"{self.out} cannot be written ({why}): give a folder or an address"))

    def __iter__(self) -> Iterator[tuple[list[str], Codes]]:
        return (self.read(number) for number in sorted(self.done()))


def _name(number: int) -> str:
    return f"part-{number:08d}.parquet"
