"""Export the items of an index to faiss, NumPy files or Parquet, in the order of insertion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FolderError, InputError, MissingExtraError
from ..hamming.bits import bytes_for
from ..utils.files import check_parent, replacing_file
from .rows import Rows

_AT_A_TIME = 1 << 16


def to_faiss(rows: Rows | None, bits: int) -> Any:
    """Return a faiss.IndexBinaryFlat of the codes; its item i has the i-th key. Padding bits are 0."""
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("to_faiss needs faiss: pip install 'adsh[search]'") from None
    flat = faiss.IndexBinaryFlat(bytes_for(bits) * 8)
    if rows is not None:
        flat.add(np.ascontiguousarray(rows.codes))
    return flat


def to_npy(rows: Rows | None, bits: int, path: Path) -> Path:
    """Write codes (uint8) and keys (texts) as NumPy files.

    Args:
        rows: the items; None if there are none.
        bits: the length of the codes.
        path: the file of the codes, NAME.npy.

    Returns:
        The file of the keys, NAME.keys.npy.
    """
    if path.suffix != ".npy":
        raise InputError(f"{path} does not end in .npy: codes are written as a NumPy file")
    codes = np.zeros((0, bytes_for(bits)), dtype=np.uint8) if rows is None else rows.codes
    keys = np.array([] if rows is None else rows.keys.run(0, len(rows)), dtype=np.str_)
    keys_path = path.with_suffix(".keys.npy")
    for target, array in ((keys_path, keys), (path, codes)):
        with replacing_file(target) as file:
            np.save(file, array, allow_pickle=False)
    return keys_path


def to_parquet(rows: Rows | None, bits: int, path: Path) -> None:
    """Write a Parquet file with the columns key, code (fixed binary) and metadata (JSON, or null).

    Args:
        rows: the items; None if there are none.
        bits: the length of the codes.
        path: the file.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("to_parquet needs pyarrow: pip install pyarrow") from None
    check_parent(path)
    width = bytes_for(bits)
    schema = pa.schema(
        [("key", pa.string()), ("code", pa.binary(width)), ("metadata", pa.string())],
        metadata={"adsh.bits": str(bits)},
    )
    try:
        with replacing_file(path) as file, pq.ParquetWriter(file, schema) as writer:
            for start in range(0, 0 if rows is None else len(rows), _AT_A_TIME):
                assert rows is not None
                block = slice(start, min(start + _AT_A_TIME, len(rows)))
                keys = rows.keys.at(block)
                raw = np.ascontiguousarray(rows.codes[block]).tobytes()
                codes = [raw[at : at + width] for at in range(0, len(raw), width)]
                texts = [None] * len(keys) if rows.metadata is None else [t or None for t in rows.metadata.at(block)]
                columns = [pa.array(keys, pa.string()), pa.array(codes, pa.binary(width)), pa.array(texts, pa.string())]
                writer.write_batch(pa.record_batch(columns, schema=schema))
    except pa.ArrowException as problem:
        raise FolderError(f"cannot write {path}: {problem}") from None
