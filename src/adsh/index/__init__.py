"""Indexes: add encoded items, find the nearest, remove them. Imports no torch."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import AdshWarning, InputError, MissingExtraError
from ..utils.urls import is_address
from .base import Index
from .matches import Item, Match, Matches

__all__ = ["Index", "Item", "Match", "Matches", "open_index"]


def open_index(
    location: str | Path,
    bits: int | None = None,
    *,
    model: Any = None,
    timeout: float = 10.0,
    create: bool | None = None,
) -> Index:
    """Open the index at a location; create it if it is missing.

    Args:
        location: a folder, `postgresql://user:password@host:5432/database?table=NAME`, or
            `milvus+http://host:19530?collection=NAME`.
        bits: the length of the codes; may be left out if the index exists.
        model: what computed the codes: a model folder, a fitted model, or a name for one of another kind. Its
            fingerprint is recorded, and another model's codes are refused from then on; those of an update of the same
            model are not: see `Index.accept_model`.
        timeout: how many seconds to wait for another process's write, and for a server.
        create: True to create a missing folder without a warning, False to refuse it. Without `bits` it is refused.

    Returns:
        The index, which is a context manager.
    """
    from ..models.fingerprint import identify

    known = None if model is None else identify(model)
    if not is_address(location):
        from .embedded.index import EmbeddedIndex

        _check_there(Path(location), bits, create)
        return EmbeddedIndex(Path(location), bits, known, timeout)
    kind = str(location).partition("://")[0]
    if kind in ("postgresql", "postgres"):
        _need("psycopg", "postgres", "PostgreSQL")
        from .postgres.index import PostgresIndex

        return PostgresIndex(str(location), bits, known, timeout)
    if kind in ("milvus+http", "milvus+https"):
        _need("pymilvus", "milvus", "Milvus")
        from .milvus.index import MilvusIndex

        return MilvusIndex(str(location), bits, known, timeout)
    raise InputError(f"{kind}:// is no kind of index: give a folder, postgresql://… or milvus+http://…")


def _check_there(folder: Path, bits: int | None, create: bool | None) -> None:
    """Warn where an index would be created that nobody said should be, or raise where it may not be.

    Args:
        folder: of the index.
        bits: the length of the codes, if given.
        create: as of `open_index`.
    """
    if create or folder.exists():
        return
    if create is False:
        raise InputError(f"there is no index at {folder}: check the path, or pass create=True")
    if bits is not None:
        warnings.warn(
            f"there is no index at {folder}, and an empty one is created: pass create=True where that is meant",
            AdshWarning,
            stacklevel=3,
        )


def _need(module: str, extra: str, what: str) -> None:
    try:
        import_module(module)
    except ImportError:
        raise MissingExtraError(f"an index in {what} needs {module}: pip install 'adsh[{extra}]'") from None
