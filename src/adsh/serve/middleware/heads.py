"""HTTP whose heads are short and come soon: uvicorn alone takes a head of any size, and waits for it for ever.

A head is what comes before the body: the request's line and its headers. Everything here is a matter of one whole
number, the bytes that came since the parser last got anywhere; trailers after a chunked body count the same.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ..problems import Problem, send_problem

LARGEST_HEAD = 1 << 16  # bytes
IDLE = 10  # seconds that a connection may wait for its next request
_BEYOND = 256  # connections over the limit that are still told so, before they are cut off unheard
_BODIES = 3  # times as long a body may go on whose request is answered already
_LINGER = 1.0  # seconds that a refused client may go on sending: closed at once, it might never read the answer


async def _full(scope: Scope, _: Receive, send: Send) -> None:
    """Answers on a connection that is one too many."""
    full = "too many connections are open: try again in a second"
    await send_problem(scope, send, Problem(503, full, {"Retry-After": "1", "Connection": "close"}))


class HeadProtocol(HttpToolsProtocol):
    """A connection."""

    patience = 10.0  # seconds for a head, from its first byte, or from the start of the connection

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._most, self.limit_concurrency = self.limit_concurrency, None  # answered here, as all else is
        self._waiting = 0  # bytes that came since a head, a piece of a body or a message was whole
        self._timer: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client is there."""
        super().connection_made(transport)
        if self._most is None:
            pass
        elif len(self.connections) > self._most + _BEYOND:
            self._refused = True
            transport.abort()
            return
        elif len(self.connections) > self._most:
            self.app = _full
        self._timer = self.loop.call_later(self.patience, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._refused:
            return
        self._waiting += len(data)
        super().data_received(data)
        if self._waiting > LARGEST_HEAD:
            self._too_large()
        elif not self._waiting and not self.cycle.response_complete:
            if self._timer is not None:
                self._cancel()
        elif self._timer is None and not self._refused:  # a head, or a body that nobody waits for any more
            patience = self.patience if self._waiting else _BODIES * self.patience
            self._timer = self.loop.call_later(patience, self._late)

    def on_headers_complete(self) -> None:
        """A head is whole."""
        if self._waiting > LARGEST_HEAD:  # or much of a body came with it
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > LARGEST_HEAD:
                raise ValueError("the head is too large")  # the parser stops
        super().on_headers_complete()  # which raises for an address that is none
        self._waiting = 0

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        self._waiting = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._waiting = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """The parser could not go on."""
        if self._waiting > LARGEST_HEAD:
            self._too_large()
        else:
            self._refuse(400, "this is not HTTP as it should be: send an HTTP/1.1 request")

    def _too_large(self) -> None:
        self._refuse(431, f"the headers have more than {LARGEST_HEAD:,} bytes: send fewer or shorter ones")

    def _late(self) -> None:
        self._timer = None
        if self.cycle is not None and not self.cycle.response_complete:  # the one before is still being answered
            self._timer = self.loop.call_later(self.patience, self._late)
        elif self._waiting:
            self._refuse(408, f"the headers were not whole after {self.patience:g} s: send them faster")
        else:
            self.transport.close()

    def _refuse(self, status: int, detail: str) -> None:
        """Answers, unless another answer is on its way, and hears no more."""
        if self._refused:
            return
        self._refused = True
        self._cancel()
        self._unset_keepalive_if_required()
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()
            return
        body = orjson.dumps({"detail": detail, "request_id": None})
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER, self.transport.close)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
