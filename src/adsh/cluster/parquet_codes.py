"""The codes of a large collection as Parquet files, one per partition.

A file is complete or missing, so that an interrupted run can continue.
"""

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
from ..utils.storage import file_system, translate_errors
from ..utils.urls import shown

DESCRIPTION = "encode.json"
_LEFT_OUT = "left out"  # the key of the schema's metadata
_FILE = re.compile(r"part-(\d+)\.parquet$")


class ParquetCodes:
    """A folder, or an address that pyarrow knows, with files part-NUMBER.parquet of the columns `key` and `code`."""

    def __init__(self, out: str, bits: int) -> None:
        self.out, self.bits, self.id = shown(out), bits, ""  # the collection's id: see `begin`
        self._files, self._base = file_system(out)
        with self._writing():
            self._files.create_dir(self._base, recursive=True)

    def begin(self, description: dict[str, Any]) -> None:
        """Store what is encoded, and give it an id; if a run continues, check that it is the same.

        Raises:
            InputError: the folder holds the codes of something else.
            FolderError: the stored description is damaged.
        """
        path = f"{self._base}/{DESCRIPTION}"
        from pyarrow import fs

        if self._files.get_file_info(path).type == fs.FileType.NotFound:
            if self.done():
                raise InputError(f"{self.out} holds partitions of something else: give another --out")
            self.id = secrets.token_hex(8)
            with self._writing():
                with self._files.open_output_stream(self._temporary(DESCRIPTION)) as file:
                    file.write((json.dumps({"id": self.id, **description}, indent=1) + "\n").encode())
                self._files.move(self._temporary(DESCRIPTION), path)
            return
        with self._files.open_input_stream(path) as file:
            try:
                stored = json.loads(file.read())
                self.id = stored["id"]
            except (ValueError, TypeError, KeyError):
                raise FolderError(f"{self.out}/{DESCRIPTION} is damaged: give another --out") from None
        for name, value in description.items():
            if stored.get(name) != value:
                raise InputError(
                    f"{self.out} was started with {name} {stored.get(name)!r}, and now it is {value!r}: give another "
                    "--out"
                )

    def done(self) -> set[int]:
        """Return the numbers of the partitions that are written."""
        from pyarrow import fs

        found = self._files.get_file_info(fs.FileSelector(self._base))
        return {int(match[1]) for file in found if (match := _FILE.search(file.path))}

    def write(self, number: int, keys: Sequence[str], codes: Codes, left_out: Sequence[str] = ()) -> None:
        """Write one partition, completely or not at all.

        Args:
            number: the partition.
            keys: its keys.
            codes: their packed codes.
            left_out: a line for each image that could not be read.
        """
        import pyarrow
        from pyarrow import parquet

        column = pyarrow.FixedSizeBinaryArray.from_buffers(
            pyarrow.binary(bytes_for(self.bits)), len(codes), [None, pyarrow.py_buffer(np.ascontiguousarray(codes))]
        )
        table = pyarrow.table({"key": pyarrow.array(list(keys), pyarrow.string()), "code": column})
        table = table.replace_schema_metadata({_LEFT_OUT: json.dumps(list(left_out))})
        temporary = self._temporary(f"{number}-{secrets.token_hex(4)}")  # no two writers share it
        with self._writing():
            parquet.write_table(table, temporary, filesystem=self._files)
            self._files.move(temporary, f"{self._base}/{_name(number)}")

    def read(self, number: int) -> tuple[list[str], Codes]:
        """Return the keys and codes of a partition."""
        from pyarrow import parquet

        table = parquet.read_table(f"{self._base}/{_name(number)}", filesystem=self._files)
        width = bytes_for(self.bits)
        codes = np.frombuffer(b"".join(table["code"].to_pylist()), dtype=np.uint8).reshape(-1, width)
        return table["key"].to_pylist(), codes

    def left_out(self, number: int) -> list[str]:
        """Return a line for each image that was left out of a partition."""
        from pyarrow import parquet

        metadata = parquet.read_schema(f"{self._base}/{_name(number)}", filesystem=self._files).metadata or {}
        lines: list[str] = json.loads(metadata.get(_LEFT_OUT.encode(), b"[]"))
        return lines

    def _temporary(self, name: str) -> str:
        return f"{self._base}/.{name}"

    def _writing(self) -> AbstractContextManager[None]:
        return translate_errors(
            lambda why: FolderError(f"{self.out} cannot be written ({why}): give a folder or an address")
        )

    def __iter__(self) -> Iterator[tuple[list[str], Codes]]:
        return (self.read(number) for number in sorted(self.done()))


def _name(number: int) -> str:
    return f"part-{number:08d}.parquet"
