"""Limit the size of request heads and the time they may take; uvicorn accepts any size, and waits without limit.

The head is what comes before the body: the request line and the headers. One number decides: the bytes received since
the parser last completed a head, a piece of a body or a message. Trailers after a chunked body count in the same way.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import httptools
import orjson
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ..engine.problems import Problem
from .joined_writes import JoinedWrites
from .responses import send_problem

MAX_HEAD = 1 << 16  # bytes
IDLE_SECONDS = 10  # that a connection may wait for its next request
_REFUSED_CONNECTIONS = 256  # over the limit that are still answered with 503; more are closed without an answer
_BODY_FACTOR = 3  # times the timeout of a head that the rest of a body may take once its request is answered
_FREE_PIECES, _MIN_PIECE = 1024, 8  # pieces of a chunked body, and the bytes that more must have on average
_LINGER = 1.0  # seconds that a refused client may keep sending: closed at once, it might never read the answer


async def _answer_full(scope: Scope, _: Receive, send: Send) -> None:
    """Answer a request on a connection over the limit."""
    detail = "too many connections are open: try again in a second"
    await send_problem(scope, send, Problem(503, detail, {"Retry-After": "1", "Connection": "close"}))


class LimitedHeadProtocol(HttpToolsProtocol):
    """A connection whose request heads are limited in size and time."""

    head_timeout = 10.0  # seconds for a head, from its first byte, or from the start of the connection

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_connections, self.limit_concurrency = (
            self.limit_concurrency,
            None,
        )  # enforced here, with a JSON answer
        self._pending = 0  # bytes received since a head, a piece of a body or a message was complete
        self._timer: asyncio.TimerHandle | None = None
        self._refused = False
        self._resuming, self._data = False, b""
        self._pieces = self._body_bytes = 0  # of the body that is being received

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the timer of a new connection, or refuse it."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]  # it forwards the rest
        if self._max_connections is None:
            pass
        elif len(self.connections) > self._max_connections + _REFUSED_CONNECTIONS:
            self._refused = True
            transport.abort()
            return
        elif len(self.connections) > self._max_connections:
            self.app = _answer_full
        self._timer = self.loop.call_later(self.head_timeout, self._time_out)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer of a closed connection."""
        self._cancel_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and set the timer for what is still missing."""
        if self._refused:
            return
        self._pending += len(data)
        self._data = data
        super().data_received(data)
        if self._pending > MAX_HEAD:
            self._too_large()
        elif not self._pending and not self.cycle.response_complete:
            if self._timer is not None:
                self._cancel_timer()
        elif self._timer is None and not self._refused:  # for a head, or a body that is no longer needed
            timeout = self.head_timeout if self._pending else _BODY_FACTOR * self.head_timeout
            self._timer = self.loop.call_later(timeout, self._time_out)

    def _unsupported_upgrade_warning(self) -> None:
        """Answer a request for another protocol as HTTP/1.1, as Java's client expects; the parser left its body out."""
        (offset,) = sys.exc_info()[1].args  # type: ignore[union-attr]  # called where HttpParserUpgrade is handled
        framing = [pair for pair in self.headers if pair[0] in (b"content-length", b"transfer-encoding")]
        head = b"POST / HTTP/1.1\r\n" + b"".join(b"%s: %s\r\n" % pair for pair in framing) + b"\r\n"
        self.cycle.keep_alive = False  # so that nothing after it can be the next request
        self.parser = httptools.HttpRequestParser(self)
        self._resuming = True
        self.parser.feed_data(head)
        self._resuming = False
        super().data_received(self._data[offset:])

    def on_message_begin(self) -> None:
        """Start a request."""
        if not self._resuming:
            self._pieces = self._body_bytes = 0
            super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        if not self._resuming:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        if not self._resuming:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check the size of a complete head."""
        if self._resuming:
            return
        if self._pending > MAX_HEAD:  # else the start of a body came with it
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > MAX_HEAD:
                raise ValueError("the head is too large")  # the parser stops
        super().on_headers_complete()  # which raises for an invalid address
        self._pending = 0

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of a body."""
        self._pending = 0
        self._pieces += 1
        self._body_bytes += len(body)
        if self._pieces > _FREE_PIECES and self._body_bytes < _MIN_PIECE * self._pieces:
            raise ValueError("the pieces are too small")  # the parser stops
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Pass on a complete request."""
        if self.parser.should_upgrade():  # its body follows
            return
        self._pending = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser cannot read."""
        if self._pending > MAX_HEAD:
            self._too_large()
        else:
            self._refuse(400, "this is not valid HTTP: send an HTTP/1.1 request")

    def _too_large(self) -> None:
        self._refuse(431, f"the headers have more than {MAX_HEAD:,} bytes: send fewer or shorter ones")

    def _time_out(self) -> None:
        self._timer = None
        if self.cycle is not None and not self.cycle.response_complete:  # the previous request is still being answered
            self._timer = self.loop.call_later(self.head_timeout, self._time_out)
        elif self._pending:
            self._refuse(408, f"the headers were not complete after {self.head_timeout:g} s: send them faster")
        else:
            self.transport.close()

    def _refuse(self, status: int, detail: str) -> None:
        """Answer, unless another answer is being sent, and read no more."""
        if self._refused:
            return
        self._refused = True
        self._cancel_timer()
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

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
