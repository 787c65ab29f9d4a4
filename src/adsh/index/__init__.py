"""Indexes: add encoded items, find the nearest, remove them. Imports no torch."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingExtraError
from ..utils.urls import is_address
from .base import Index
from .matches import Item, Match, Matches

__all__ = ["Index", "Item", "Match", "Matches", "open_index"]


def open_index(location: str | Path, bits: int | None = None, *, model: Any = None, timeout: float = 10.0) -> Index:
    """Open the index at a location; create it if it is missing.

    Args:
        location: a folder, `postgresql://user:password@host:5432/database?table=NAME`, or
            `milvus+http://host:19530?collection=NAME`.
        bits: the length of the codes; may be left out if the index exists.
        model: what computed the codes: a model folder, a fitted model, or a name for one of another kind. Its
            fingerprint is recorded, and another model's codes are refused from then on; those of an update of the same
            model are not: see `Index.accept_model`.
        timeout: how many seconds to wait for another process's write, and for a server.

    Returns:
        The index, which is a context manager.
    """
    from ..models.fingerprint import identify

    known = None if model is None else identify(model)
    if not is_address(location):
        from .embedded.index import EmbeddedIndex

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


def _need(module: str, extra: str, what: str) -> None:
    try:
        import_module(module)
    except ImportError:
        raise MissingExtraError(f"an index in {what} needs {module}: pip install 'adsh[{extra}]'") from None
