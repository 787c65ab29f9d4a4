"""Codes and matches as tables: for pandas and polars, and as Parquet.

`codes_table` and `matches_table` give plain columns by name, of which `to_frame` and `write_parquet` make the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import InputError, MissingExtraError
from ..hamming.bits import Codes, check_codes
from ..utils.files import check_parent, replacing_file

Columns = Mapping[str, list[Any]]
KINDS = ("pandas", "polars", "pyarrow")


def codes_table(codes: Codes, keys: Sequence[str] | None = None, bits: int | None = None) -> dict[str, list[Any]]:
    """Return packed codes as columns: `key`, and `code`, the bytes.

    Args:
        codes: (n, bytes).
        keys: of the items; their numbers unless given.
        bits: the code length; checked, where given.

    Returns:
        The columns.
    """
    codes = np.asarray(codes) if bits is None else check_codes(codes, bits)
    named = [str(number) for number in range(len(codes))] if keys is None else list(keys)
    if len(named) != len(codes):
        raise InputError(f"{len(named)} keys are given for {len(codes)} codes: give one a code")
    return {"key": named, "code": [row.tobytes() for row in codes]}


def matches_table(found: Sequence[Any], queries: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Return the results of `index.search` as columns: query, rank, key, distance, and one for each metadata field.

    Args:
        found: one `Matches` for each query.
        queries: what to call them; their numbers unless given.

    Returns:
        The columns, a row a match.
    """
    named = [str(number) for number in range(len(found))] if queries is None else [str(name) for name in queries]
    if len(named) != len(found):
        raise InputError(f"{len(named)} names are given for {len(found)} queries: give one a query")
    rows = [
        (name, rank, match.key, float(match.distance), match.metadata or {})
        for name, matches in zip(named, found, strict=True)
        for rank, match in enumerate(matches, start=1)
    ]
    columns: dict[str, list[Any]] = {"query": [], "rank": [], "key": [], "distance": []}
    for column, values in zip(columns.values(), zip(*(row[:4] for row in rows), strict=True), strict=False):
        column += values
    fields = dict.fromkeys(field for row in rows for field in row[4])
    return columns | {name: [row[4].get(name) for row in rows] for name in fields if name not in columns}


def to_frame(columns: Columns, kind: str = "pandas") -> Any:
    """Return columns as a frame of pandas or polars, or a table of pyarrow."""
    if kind not in KINDS:
        raise InputError(f"kind={kind!r}: choose one of {', '.join(KINDS)}")
    try:
        if kind == "pandas":
            import pandas

            return pandas.DataFrame(dict(columns))
        if kind == "polars":
            import polars

            return polars.DataFrame(dict(columns), strict=False)
        import pyarrow

        return pyarrow.table(dict(columns))
    except ImportError:
        raise MissingExtraError(f"a table of {kind} needs it: pip install {kind}") from None


def write_parquet(columns: Columns, file: BinaryIO) -> None:
    """Write columns to an open file as Parquet."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("Parquet is written with pyarrow: pip install 'adsh[tables]'") from None
    parquet.write_table(to_frame(columns, "pyarrow"), file)


def check_parquet(path: Path) -> None:
    """Raise where a table could not be written to this path."""
    if path.suffix.lower() != ".parquet":
        raise InputError(f"{path}: give a name that ends in .parquet")
    check_parent(path)


def save_parquet(columns: Columns, path: str | Path) -> None:
    """Write columns to a Parquet file, whole or not at all."""
    check_parquet(Path(path))
    with replacing_file(Path(path)) as file:
        write_parquet(columns, file)
