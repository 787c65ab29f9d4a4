"""Indexes: put coded items in, find the nearest, take them out. No torch here."""

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
    """The index at this place, made where it is missing.

    Args:
        location: a folder, `postgresql://user:password@host:5432/database?table=NAME`, or
            `milvus+http://host:19530?collection=NAME`.
        bits: the length of the codes; may be left out where the index exists.
        model: what made the codes: a model folder, a fitted model, or a name for one of another kind. Its fingerprint
            is recorded, and another model's codes are refused from then on.
        timeout: how many seconds a write waits for that of another process, and a server is waited for.
    """
    from ..models.fingerprint import model_fingerprint

    fingerprint = None if model is None else model_fingerprint(model)
    if not is_address(location):
        from .embedded.index import EmbeddedIndex

        return EmbeddedIndex(Path(location), bits, fingerprint, timeout)
    kind = str(location).partition("://")[0]
    if kind in ("postgresql", "postgres"):
        _need("psycopg", "postgres", "PostgreSQL")
        from .postgres.index import PostgresIndex

        return PostgresIndex(str(location), bits, fingerprint, timeout)
    if kind in ("milvus+http", "milvus+https"):
        _need("pymilvus", "milvus", "Milvus")
        from .milvus.index import MilvusIndex

        return MilvusIndex(str(location), bits, fingerprint, timeout)
    raise InputError(f"{kind}:// is not a kind of index here: give a folder, postgresql://… or milvus+http://…")


def _need(module: str, extra: str, what: str) -> None:
    try:
        import_module(module)
    except ImportError:
        raise MissingExtraError(f"an index in {what} needs {module}: pip install 'adsh[{extra}]'") from None
