"""File systems of s3://, gs://, hdfs:// and file:// URLs and of paths, by pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import AdshError, InputError, MissingExtraError, first_line
from .urls import secrets_of, shown, without_secrets

_RETRY_LIMIT = "retry_limit_seconds=60"  # Google's client retries for 15 minutes by default


def file_system(address: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path there, which need not exist."""
    try:
        from pyarrow import fs
    except ImportError:
        raise MissingExtraError("reading and writing at addresses needs pyarrow: pip install 'adsh[tables]'") from None
    if "://" not in address:
        return fs.LocalFileSystem(), address
    if address.startswith(("gs://", "gcs://")) and "retry_limit_seconds" not in address:
        address += ("&" if "?" in address else "?") + _RETRY_LIMIT
    secrets = secrets_of(address)
    with translate_errors(
        lambda why: InputError(f"{shown(address)} cannot be used ({without_secrets(why, secrets)}): check the address")
    ):
        filesystem, path = fs.FileSystem.from_uri(address)
    return filesystem, path


@contextmanager
def translate_errors(error: Callable[[str], AdshError]) -> Iterator[None]:
    """Turn the errors of a file system into one of ours, which `error` builds from the reason."""
    from pyarrow import ArrowException

    try:
        yield
    except AdshError:
        raise
    except (OSError, ValueError, ArrowException) as problem:
        raise error(first_line(problem)) from None
