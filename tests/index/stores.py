"""Places for indexes of every kind: what the conformance tests run against."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import pytest

from tests.index import milvus_server, postgres_server

KINDS = ("embedded", "postgres", "milvus")

_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Place:
    """Where an index can be made, and what this kind of index can do."""

    location: str
    kind: str
    vectors: bool = True  # and re-ranking by them
    asymmetric: bool = True


@cache
def postgres() -> postgres_server.Server:
    """One server for all tests of a process."""
    reason = postgres_server.missing()
    if reason:
        pytest.skip(reason)
    return postgres_server.Server("fsync=off", "max_connections=50")


@cache
def milvus() -> milvus_server.Server:
    """One server for all tests of a process."""
    reason = milvus_server.missing()
    if reason:
        pytest.skip(reason)
    return milvus_server.Server()


def place(kind: str, folder: object) -> Place:
    """A new place for an index of this kind."""
    number = next(_NUMBERS)
    if kind == "postgres":
        return Place(postgres().uri(query=f"table=t{number}"), kind)
    if kind == "milvus":
        return Place(milvus().uri(f"collection=t{number}"), kind, vectors=False, asymmetric=False)
    return Place(f"{folder}/index {number}", kind)


def stop() -> None:
    """Ends the servers that were started."""
    for server in (postgres, milvus):
        if server.cache_info().currsize:
            server().stop()
            server.cache_clear()
