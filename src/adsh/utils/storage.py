"""Where addresses lead: s3://, gs://, hdfs://, file:// or a path, by the file systems that pyarrow knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import AdshError, InputError, MissingExtraError, first_line
from .urls import secrets_of, shown, without_secrets

_PATIENCE = "retry_limit_seconds=60"  # Google's client tries for 15 minutes by itself


def file_system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path there, which need not exist."""
    try:
        from pyarrow import fs
    except ImportError:
        raise MissingExtraError("reading and writing at addresses needs pyarrow: pip install 'adsh[ray]'") from None
    if "://" not in address:
        return fs.LocalFileSystem(), address
    if address.startswith(("gs://", "gcs://")) and "retry_limit_seconds" not in address:
        address += ("&" if "?" in address else "?") + _PATIENCE
    secrets = secrets_of(address)
    with told_as(
        lambda why: InputError(f"{shown(address)} cannot be used ({without_secrets(why, secrets)}): check the address")
    ):
        filesystem, path = fs.FileSystem.from_uri(address)
    return filesystem, path


@contextmanager
def told_as(error: Callable[[str], AdshError]) -> Iterator[None]:
    """What a file system finds wrong becomes one of our errors, with its reason."""
    from pyarrow import ArrowException

    try:
        yield
    except AdshError:
        raise
    except (OSError, ValueError, ArrowException) as problem:
        raise error(first_line(problem)) from None
