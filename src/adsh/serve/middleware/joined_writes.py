"""Send the head of an answer and its body together: uvicorn writes them apart, which takes two calls of the system."""

from __future__ import annotations

import asyncio
from typing import Any

_LARGE = 1 << 16  # bytes that are sent at once: joining them would copy them


class JoinedWrites:
    """A transport that sends what is written in one turn of the event loop as one piece.

    Args:
        transport: What sends.
        loop: The event loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send bytes soon."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)
        if len(data) >= _LARGE:
            self._flush()

    def close(self) -> None:
        """Send what was written, and close the connection."""
        self._flush()
        self._transport.close()

    def write_eof(self) -> None:
        """Send what was written, and that no more will come."""
        self._flush()
        self._transport.write_eof()

    def _flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if len(pieces) > 1 and len(pieces[-1]) >= _LARGE:
            self._transport.write(b"".join(pieces[:-1]))
            self._transport.write(pieces[-1])
        elif pieces:
            self._transport.write(b"".join(pieces) if len(pieces) > 1 else pieces[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
