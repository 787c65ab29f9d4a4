"""Messages between the service and its workers over pipes: a JSON header, and bytes.

No pickle: a worker that a hostile file has taken over could then run code in the service.
"""

from __future__ import annotations

import struct
from typing import IO, Any

import orjson

_LENGTHS = struct.Struct(">IQ")  # of the header, and of the bytes


def write_frame(file: IO[bytes], header: dict[str, Any], payload: bytes | memoryview = b"") -> None:
    """Write one message.

    Args:
        file: Where to.
        header: What the bytes are.
        payload: The bytes.
    """
    head = orjson.dumps(header)
    file.write(_LENGTHS.pack(len(head), len(payload)) + head)
    file.write(payload)
    file.flush()


def read_frame(file: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Return the header and bytes of the next message; None at the end of the pipe, also in the middle of one."""
    lengths = file.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    head_length, length = _LENGTHS.unpack(lengths)
    head, payload = file.read(head_length), file.read(length)
    if len(head) < head_length or len(payload) < length:
        return None
    header: dict[str, Any] = orjson.loads(head)
    return header, payload
